"""A register of which some bits have a value: what is made of these alone has one, too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness import engine, kernels, run, table
from ptxsim.findings.finding import Kind
from ptxsim.launching import Output, launch


@pytest.mark.parametrize(("body", "value", "width", "known"), table("undefined_bits.txt"))
def test_each_instruction(body: str, value: str, width: str, known: str, tmp_path: Path) -> None:
    path = tmp_path / "bits.ptx"
    path.write_text(kernels("undefined_bits.ptx", body=body, value=value, width=width))
    out = np.zeros(1, np.uint64)
    found = launch(path, "k", 1, 32, [Output(out), 5], engine=engine()).findings
    kinds = [each.kind for each in found if each.kind is not Kind.RACE]
    assert kinds == [Kind.UNINITIALIZED_READ] * (known == "unknown")


@pytest.mark.parametrize("fills", ["value.bytes[2] = a[i + 7];", ""])
def test_a_union_filled_by_bytes_and_halves(fills: str) -> None:
    a, b = np.arange(1, 65, dtype=np.uint8), np.zeros(32, np.uint32)
    outcome = run(kernels("union.cu", fills=fills), [a, np.array([3], np.int32), b])
    kinds = [each.kind for each in outcome.findings]
    assert kinds == [Kind.UNINITIALIZED_READ] * (not fills)
