"""Watched elements: every write in order, and what its value was computed from."""

from pathlib import Path

import numpy as np
import pytest

from harness import engine, kernels, values
from ptxsim import Module, Output
from ptxsim.findings.writes import in_lines


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Module:
    source = tmp_path_factory.mktemp("watched") / "watched.cu"
    source.write_text(kernels("watched.cu"))
    return Module(source, arch="sm_90", engine=engine())


@pytest.mark.parametrize(("kernel", "block", "arguments", "element", "says"), values("writes.txt"))
def test_a_value_is_told_with_what_it_came_from(
    module: Module, kernel: str, block: int, arguments: object, element: str, says: str
) -> None:
    given = [_argument(text) for text in str(arguments).split()]
    report = module.kernel(kernel).launch((1, block), *given, watch=[element])
    assert report.clean, report
    head, *origin = in_lines(report.writes[-1:], 0, lambda _: None)
    assert " ".join((head.split("  ")[0], *map(str.strip, origin))) == says


def _argument(text: str) -> object:
    """``4``, ``f4``: of 256 elements 0, 1, …; ``out:f4``: nobody has written them."""
    made, _, kind = text.rpartition(":")
    if text.isdecimal():
        return int(text)
    array = np.arange(256).astype(kind)
    return Output(array) if made else array


def test_writes_are_records(module: Module) -> None:
    seen = np.arange(64, dtype=np.int32)
    (write,) = module.kernel("copy")[1, 32](
        seen, Output(np.zeros(32, np.int32)), watch=["c[3]"]
    ).writes
    assert (write.element, write.type, write.old, write.new) == ("argument 1[3]", "i32", None, 4)
    assert (write.by, write.launch, write.block, write.thread) == (
        "copy<<<1,32>>>",
        1,
        (0, 0, 0),
        (3, 0, 0),
    )
    assert write.place and Path(write.place.file).name == "watched.cu"
    (operand,) = write.operands
    assert (operand.value, operand.type, operand.name) == (4, "i32", "argument 0[4]")
    with pytest.raises(AttributeError):
        write.new = 5  # type: ignore[misc]


def test_many_writes_are_counted(module: Module) -> None:
    report = module.kernel("count")[2, 32](20, watch=["counts[2]:u32"])
    assert (len(report.writes), report.writes_left_out) == (1000, 280)
    assert [each.new for each in report.writes[:2]] == [(1 << 32) - 1, (1 << 32) - 2]
    *_, last = in_lines(report.writes, report.writes_left_out, lambda _: None)
    assert last == "… and 280 more"


@pytest.mark.parametrize(
    ("element", "says"),
    [
        ("c[32]", "argument 1 has 128 bytes, 32 elements of 4"),
        ("2[0]", "no memory has this name; there are counts, argument 0, argument 1"),
        ("counts[4]", "counts has 16 bytes, 4 elements of 4"),
        ("counts[1,2]", "give NAME"),
        ("counts[1]:f8", "give NAME"),
    ],
)
def test_what_is_not_there_is_said(module: Module, element: str, says: str) -> None:
    given = np.zeros(33, np.int32), np.zeros(32, np.int32)
    with pytest.raises(ValueError, match=r"^--watch ") as raised:
        module.kernel("copy")[1, 32](*given, watch=[element])
    assert says in str(raised.value) and "\n" not in str(raised.value)


def test_blocks_of_a_watched_launch_do_not_run_at_the_same_time(module: Module) -> None:
    c = np.zeros(1 << 20, np.int32)
    engine().library.sim_jobs(2)
    try:
        (write,) = module.kernel("fill")[4096, 256](c, watch=["c[1048575]"]).writes
    finally:
        engine().library.sim_jobs(1)
    assert (write.new, write.block) == (4095, (4095, 0, 0))
