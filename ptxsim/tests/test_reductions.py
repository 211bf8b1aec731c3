"""red.async and cp.reduce.async.bulk beside numpy; sums that nobody began, or waits for."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harness import engine, kernels
from ptxsim.findings.event_table import Event
from ptxsim.launching import Output, launch
from ptxsim.outcome import SimOutcome

BY_MBARRIER = "mbarrier::complete_tx::bytes"
WAIT = """
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %over, [%full], 0;
  @!%over bra WAIT;"""
KEEP = """
  ld.shared.b64 %theirs, [%to];
  st.global.b64 [%place], %theirs;"""
FORMS = {
    "red": f"red.async.relaxed.cluster.shared::cluster.{BY_MBARRIER}.$OP",
    "shared": "@%first cp.reduce.async.bulk.shared::cluster.shared::cta."
    f"{BY_MBARRIER}.$OP [target], [source], 256, [full];",
    "global": "@%first cp.reduce.async.bulk.global.shared::cta.bulk_group.$OP [%y], [source], 256;"
    " cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
}
IN_SHARED = ["add.u32", "add.s32", "add.u64", "inc.u32", "dec.u32", "and.b32", "or.b32", "xor.b32"]
IN_SHARED += [f"{name}.{kind}" for name in ("min", "max") for kind in ("u32", "s32")]
IN_GLOBAL = [*IN_SHARED, "and.b64", "or.b64", "xor.b64", "add.f32", "add.f64"]
IN_GLOBAL += [f"add.noftz.{kind}" for kind in ("f16", "bf16")]
IN_GLOBAL += [f"{n}.{kind}" for n in ("min", "max") for kind in ("u64", "s64", "f16", "bf16")]
CASES = [(form, op) for form in ("red", "shared") for op in IN_SHARED]
CASES += [("global", op) for op in IN_GLOBAL]
RESULT: dict[str, Any] = {
    **{"add": np.add, "min": np.minimum, "max": np.maximum},
    **{"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor},
    "inc": lambda y, x: np.where(y >= x, 0, y + 1),
    "dec": lambda y, x: np.where((y == 0) | (y > x), x, y - 1),
}


def reduced(
    form: str,
    op: str,
    x: object,
    y: object,
    folder: Path,
    *,
    grid: int = 1,
    waits: bool = True,
    sets: bool = True,
) -> SimOutcome:
    text = FORMS[form].replace("$OP", op)
    if form == "red":
        bits = int(op[-2:])
        parts = [(0, "%mine")] if bits == 64 else [(0, "%low"), (4, "%high")]
        text = "\n".join(f"  {text} [%to+{at}], {part}, [%full];" for at, part in parts)
    text += (WAIT * waits + KEEP) * (form != "global")
    ptx = folder / "reduces.ptx"
    sets_target = "ld.global.b64 %theirs, [%place]; st.shared.b64 [%to], %theirs;" * sets
    ptx.write_text(kernels("reductions.ptx", reduces=text, initialises=sets_target))
    return launch(ptx, "reduces", grid, 32, [x, y], engine=engine())  # type: ignore[list-item]


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


@pytest.mark.parametrize("form", ["red", "shared"])
def test_sums_that_nobody_waits_for_or_began(form: str, tmp_path: Path) -> None:
    x, y = np.ones(64, np.uint32), np.ones(64, np.uint32)
    outcome = reduced(form, "add.u32", x, y, tmp_path, waits=False)
    assert {each.event for each in outcome.findings} == {Event.BULK_COPY_RACE}
    outcome = reduced(form, "add.u32", x, y, tmp_path, sets=False)
    assert {each.event for each in outcome.findings} == {Event.UNDEFINED_STORE}


def test_sums_of_blocks_in_global_memory(tmp_path: Path) -> None:
    x, y = np.arange(64, dtype=np.uint32), np.ones(64, np.uint32)
    assert reduced("global", "add.u32", x, y, tmp_path, grid=3, sets=False).findings == ()
    np.testing.assert_array_equal(y, 3 * x + 1)
    outcome = reduced("global", "add.u32", x, Output(y), tmp_path, sets=False)
    assert {each.event for each in outcome.findings} == {Event.UNDEFINED_STORE}
