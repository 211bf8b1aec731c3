"""Instructions by which the lanes of a warp exchange values: one warp, every lane's result."""

from pathlib import Path

import numpy as np
import pytest

from harness import kernels, launch, table
from ptxsim.findings.finding import FindingKind

X = [7 * lane % 40 * 0x20001 for lane in range(32)]


def half(x: list[int], row: int, column: int) -> int:
    """The element of an 8 x 8 matrix of 16 bits, of which a lane holds two in a row."""
    return x[4 * row + column // 2] >> 16 * (column % 2) & 0xFFFF


@pytest.mark.parametrize(("body", "expected"), table("cross_lane.txt"))
def test_values(body: str, expected: str, tmp_path: Path) -> None:
    ptx = tmp_path / "k.ptx"
    ptx.write_text(kernels("cross_lane.ptx", body=body))
    out = np.zeros(32, np.uint32)
    assert not launch(ptx, "k", 1, 32, [out]).findings
    want = [eval(expected, {"x": X, "l": lane, "half": half}) for lane in range(32)]
    assert out.tolist() == want


@pytest.mark.parametrize(("unknown", "shown"), [("lt.u32 %p, %l, 4", 4), ("lt.u32 %p, %l, 0", 0)])
def test_a_transpose_moves_values_that_nobody_set(unknown: str, shown: int, tmp_path: Path) -> None:
    """The first row is without values; four lanes hold the first column of it after the move."""
    body = f"""setp.{unknown}; @!%p mov.b32 %z, %x;
      movmatrix.sync.aligned.m8n8.trans.b16 %y, %z;
      setp.eq.u32 %q, %few, 0; @%q mov.b32 %y, 0;"""
    ptx = tmp_path / "k.ptx"
    ptx.write_text(kernels("cross_lane.ptx", body=body))
    assert not launch(ptx, "k", 1, 32, [np.zeros(32, np.uint32)]).findings
    ptx.write_text(kernels("cross_lane.ptx", body=body.replace("@%q mov.b32 %y, 0;", "")))
    found = launch(ptx, "k", 1, 32, [np.zeros(32, np.uint32)]).findings
    assert [each.kind for each in found] == [FindingKind.UNINITIALIZED_READ] * bool(shown)
