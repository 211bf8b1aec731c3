"""Words that threads change together: whether another order of their accesses changes results.

The kernels are in kernels/given_way.cu, and each runs as ``ptxsim run`` has it by default.
"""

from pathlib import Path

import numpy as np
import pytest

from harness import compiled, engine, sentence, table
from ptxsim import Module
from ptxsim.findings.event_table import Event
from ptxsim.findings.finding import Finding, FindingKind, Severity
from ptxsim.plan.records import Memset
from ptxsim.report import Report
from ptxsim.streams import postponed

SOURCE = (Path(__file__).parent / "kernels" / "given_way.cu").read_text()
FOUND = dict(table("given_way.txt"))


def launched(kernel: str, blocks: int, orders: int = 1) -> Report:
    x, y = np.random.default_rng(1).random(1024, np.float32), np.zeros(1024, np.float32)
    module = Module(compiled(SOURCE, "sm_80")[0], engine=engine())
    return module.kernel(kernel)[blocks, 64](x, y, orders=orders)


def bad_lines(kernel: str) -> set[int]:
    lines = SOURCE.splitlines()
    first = next(k for k, text in enumerate(lines) if text.startswith(f"KERNEL {kernel}("))
    last = next(k for k, text in enumerate(lines) if k > first and text == "}")
    return {k + 1 for k in range(first, last) if "// BAD" in lines[k]}


def found(report: Report) -> list[Finding]:
    assert report.stopped is None
    return [each for each in report.findings if each.kind is not FindingKind.ORDER]


@pytest.mark.parametrize("blocks", [2, 9])
@pytest.mark.parametrize("kernel", FOUND)
def test_what_another_order_shows(kernel: str, blocks: int) -> None:
    seen = found(launched(kernel, blocks))
    errors = [each for each in seen if each.severity is Severity.ERROR]
    if FOUND[kernel] == "none":
        assert seen == []
    elif (event := Event[FOUND[kernel]]).severity is Severity.WARNING:
        assert [each.event for each in seen] == [event]
    else:
        (error,) = errors
        assert error.event is event and error.place and error.place.line in bad_lines(kernel)
        assert "y" not in {each.name for each in seen if each.event is Event.LOOKS_AT_ATOMIC}


@pytest.mark.parametrize("kernel", [name for name, event in FOUND.items() if event == "none"])
def test_right_kernels_in_more_orders(kernel: str) -> None:
    """A list in another order is but a warning, and no read is to blame."""
    assert found(launched(kernel, 5, orders=5)) == []


def test_a_change_that_may_be_lost_is_a_warning_even_in_one_order() -> None:
    seen = found(launched("swaps_once", 9))
    (warning,) = (each for each in seen if each.event is Event.UNCHECKED_SWAP)
    assert "try again until it is what was expected" in sentence(warning)


def test_both_orders_show_their_values() -> None:
    report = launched("divides_by_volatile", 2)
    (differs,) = (each for each in report.findings if each.kind is FindingKind.ORDER)
    assert "depends on the order of blocks and warps" in str(differs.text)


def memset(after: tuple[int, ...] | None = None) -> Memset:
    return Memset(allocation=2, delta=0, value=0, size=4, after=after)


@pytest.mark.parametrize(
    ("operations", "order"),
    [
        ((memset(), memset(), memset()), [0, 1, 2]),
        ((memset(), memset(()), memset((2,))), [1, 0, 2]),
        ((memset(), memset((1,)), memset(()), memset((1,)), memset()), [2, 3, 0, 1, 4]),
    ],
)
def test_another_order_of_the_streams(operations: tuple[Memset, ...], order: list[int]) -> None:
    assert postponed(operations, 0) == order
