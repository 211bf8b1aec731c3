"""Where shared arrays lie, and that one array's overrun is found though another follows at once.

ptx_oddities.txt compares the addresses with ptxas's.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness import engine, kernels, sentence, table
from ptxsim.findings.finding import Kind
from ptxsim.launching import Output, launch
from ptxsim.outcome import SimOutcome


def run(body: str, tmp_path: Path, n: int = 0, target: str = "sm_80") -> tuple[SimOutcome, int]:
    path = tmp_path / "shared.ptx"
    path.write_text(kernels("shared_arrays.ptx", body=body, target=target))
    out = np.zeros(1, np.uint32)
    outcome = launch(path, "k", 1, 1, [Output(out), n], shared_bytes=256, engine=engine())
    return outcome, int(out[0])


@pytest.mark.parametrize(("target", "base"), [("sm_75", 0), ("sm_89", 0), ("sm_90a", 1024)])
def test_the_first_bytes_belong_to_the_system_from_hopper_on(
    target: str, base: int, tmp_path: Path
) -> None:
    for register, at in (("%r2", base), ("%r3", base + 256), ("%r4", base + 512)):
        outcome, address = run(f"st.global.u32 [%rd1], {register};", tmp_path, target=target)
        assert (address, outcome.findings) == (at, ())


@pytest.mark.parametrize(("n", "body", "says"), table("overruns.txt"))
def test_an_overrun_is_found_by_where_the_address_comes_from(
    n: str, body: str, says: str, tmp_path: Path
) -> None:
    every = "shl.b32 %r5, %r1, 2;"
    every += "st.shared.u32 [first+4], 1; st.shared.u32 [second+4], 1; st.shared.u32 [dyn], 1;"
    found = run(every + body, tmp_path, int(n))[0].findings
    assert [each.kind in (Kind.OUT_OF_BOUNDS, Kind.MISALIGNED) for each in found] == [True] * bool(
        says
    )
    assert says in "".join(sentence(each) for each in found)


@pytest.mark.parametrize(("target", "first"), [("sm_80", 0), ("sm_90", 1024)])
def test_a_program_that_computes_with_an_address_is_told_so(
    target: str, first: int, tmp_path: Path
) -> None:
    body = "xor.b32 %r6, %r2, %r1; st.shared.u32 [%r6], 1; xor.b32 %r5, %r1, 3;"
    outcome, _ = run(body, tmp_path, target=target)
    assert outcome.findings == ()
    (hint,) = outcome.hints
    assert f"is {first} here" in sentence(hint)
    assert not run("xor.b32 %r5, %r1, 3; st.shared.u32 [first], 1;", tmp_path)[0].hints


@pytest.mark.parametrize(
    ("code", "depends"),
    [
        ("xor.b32 %r5, %r2, %r1;", True),
        ("xor.b32 %r5, %r2, 64;", False),
        ("and.b32 %r5, %r2, 8064;", True),
        ("and.b32 %r5, %r2, -128;", False),  # rounded down to a line of banks
        ("and.b32 %r5, %r2, 262143;", False),  # every address
        ("or.b32 %r5, %r2, 4096;", True),
        ("or.b32 %r5, %r2, 16;", False),
        ("bfe.u32 %r5, %r2, 7, 4;", True),
        ("bfe.u32 %r5, %r2, 7, 3;", False),
        ("add.u32 %r5, %r2, %r1;", False),
    ],
)
def test_what_depends_on_the_first_address_is_a_hint(
    code: str, depends: bool, tmp_path: Path
) -> None:
    outcome, _ = run(f"{code} st.global.u32 [%rd1], %r5;", tmp_path)
    assert [hint.kind for hint in outcome.hints] == [Kind.HINT] * depends
