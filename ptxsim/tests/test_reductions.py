"""red.async and cp.reduce.async.bulk beside numpy; sums that nobody began, or waits for."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harness import kernels, launch, table
from ptxsim import Output
from ptxsim.findings.event_table import Event
from ptxsim.outcome import SimOutcome

TEXTS = dict(table("reductions.txt"))
# In shared memory, and what there is in global memory alone.
OPS = (
    "add.u32 add.s32 add.u64 inc.u32 dec.u32 and.b32 or.b32 xor.b32 min.u32 min.s32 max.u32 max.s32"
)
MORE = "and.b64 or.b64 xor.b64 add.f32 add.f64 add.noftz.f16 add.noftz.bf16 min.u64 min.s64 min.f16"
MORE += " min.bf16 max.u64 max.s64 max.f16 max.bf16"
CASES = [(form, op) for form in ("one", "bulk", "global") for op in OPS.split()]
CASES += [("global", op) for op in MORE.split()]
RESULT: dict[str, Any] = {
    **{"add": np.add, "min": np.minimum, "max": np.maximum},
    **{"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor},
    "inc": lambda y, x: np.where(y >= x, 0, y + 1),
    "dec": lambda y, x: np.where((y == 0) | (y > x), x, y - 1),
}


def reduced(
    form: str, op: str, x: Any, y: Any, folder: Path, *, grid: int = 1, without: str = ""
) -> SimOutcome:
    """One launch of a kernel without one of its parts."""
    wide = form == "one" and op.endswith("64")
    parts = [form + "64" * wide, *["waits", "keeps"] * (form != "global")]
    text = " ".join(TEXTS[part] for part in parts if part != without).replace("$OP", op)
    sets = "" if without == "sets" else TEXTS["sets"]
    ptx = folder / "reduces.ptx"
    ptx.write_text(kernels("reductions.ptx", reduces=text, initialises=sets))
    return launch(ptx, "reduces", grid, 32, [x, y])


@pytest.mark.parametrize(("form", "op"), CASES)
def test_values(form: str, op: str, tmp_path: Path) -> None:
    name, kind = op.split(".")[0], op.split(".")[-1]
    type_ = {"s": "i", "b": "u"}.get(kind[0], kind[0])
    dtype = np.dtype("f4" if kind == "bf16" else f"{type_}{int(kind[1:]) // 8}")
    random = np.random.default_rng(2)
    count = 256 * 8 // int(kind[-2:])
    low = -9 if dtype.kind in "if" else 0
    x, y = (random.integers(low, 9, count).astype(dtype) for _ in range(2))
    want = RESULT[name](y, x).astype(dtype)

    def held(values: NDArray[Any]) -> NDArray[Any]:
        return (values.view(np.uint32) >> 16).astype(np.uint16) if kind == "bf16" else values

    x, y, want = held(x), held(y), held(want)
    assert reduced(form, op, x, y, tmp_path).findings == ()
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("form", ["one", "bulk"])
def test_sums_that_nobody_waits_for_or_began(form: str, tmp_path: Path) -> None:
    for without, event in (("waits", Event.BULK_COPY_RACE), ("sets", Event.UNDEFINED_STORE)):
        ones = np.ones(64, np.uint32)
        outcome = reduced(form, "add.u32", ones, ones.copy(), tmp_path, without=without)
        assert {each.event for each in outcome.findings} == {event}


def test_sums_of_blocks_in_global_memory(tmp_path: Path) -> None:
    x, y = np.arange(64, dtype=np.uint32), np.ones(64, np.uint32)
    assert reduced("global", "add.u32", x, y, tmp_path, grid=3, without="sets").findings == ()
    np.testing.assert_array_equal(y, 3 * x + 1)
    outcome = reduced("global", "add.u32", x, Output(y), tmp_path, without="sets")
    assert {each.event for each in outcome.findings} == {Event.UNDEFINED_STORE}
