"""Calls through pointers, and the heap that kernels have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness import kernels, launched, planned, run, run_ptx, sentence, table
from ptxsim.findings.finding import Kind
from ptxsim.frontend.module import read_module
from ptxsim.lowering.notes import origins, tensor_core_notes
from ptxsim.outcome import RefusedProgram, SimOutcome

DIRECT = "call direct, ();"
BY_POINTER = "{ proto : .callprototype ()_ (); call %rd1, (), proto; }"


@pytest.mark.parametrize(("call", "hidden"), [(DIRECT, False), (BY_POINTER, True)])
def test_a_pointer_may_lead_into_a_kernel_that_nobody_launches(call: str, hidden: bool) -> None:
    module = read_module(kernels("hidden_kernel.ptx", call=call), Path("/nowhere"))
    plan = planned((), launched("kernel"))
    kinds = [note.kind for note in tensor_core_notes(module, [plan])]
    assert kinds == [Kind.TENSOR_CORE] * hidden
    assert ("kernel" in origins(module)) == hidden


CALLS = kernels("calls.cu")


def test_lanes_that_call_different_functions_part_and_meet_again() -> None:
    out = np.zeros(64, np.float32)

    def call(which: int, a: int, b: list[int], n: int) -> tuple[int, list[int]]:
        if which == 0:
            return a + n, [b[2], b[0], b[1]]
        if which == 1:
            return call(0, *call(0, a, b, n), n)
        return call(n % 3, *call(1, a, b, 1), n - 1) if n else (a, b)

    assert run(CALLS, [out], [0], block=(64, 1, 1), kernel="lanes").findings == ()
    want = [call(t % 3, 1, [1, 2, 3], t) for t in range(64)]
    assert out.tolist() == [a + 100 * b[0] + 64 for a, b in want]


@pytest.mark.parametrize(
    ("kernel", "says"),
    [
        ("calls_null", "calls a function through a null pointer at line 22"),
        ("calls_an_array", "no function of these parameters and this result lies at"),
        ("calls_another_type", "no function of these parameters and this result lies at"),
    ],
)
def test_a_pointer_to_no_such_function_is_found_with_its_line(kernel: str, says: str) -> None:
    (found,) = run(CALLS, [np.zeros(1, np.float32)], [7], kernel=kernel).findings
    assert found.kind == "out-of-bounds"
    assert says in sentence(found)


def on_the_heap(body: str, threads: int = 64) -> SimOutcome:
    source, out = kernels("heap.cu", body=body), np.zeros(64, np.float32)
    return run(source, [out], [3], block=(threads, 1, 1), kernel="k")


@pytest.mark.parametrize(("body", "kind", "says"), table("heap.txt"))
def test_memory_of_the_heap(body: str, kind: str, says: str) -> None:
    outcome = on_the_heap(body)
    told = [sentence(found) for found in outcome.findings]
    assert {found.kind for found in outcome.findings} == ({kind} if kind else set()), told
    assert not kind or any(says in each for each in told), told


def test_findings_keep_their_memory_when_the_heap_forgets_what_was_freed() -> None:
    body = """
  float* q = static_cast<float*>(malloc(32));
  if (p) { free(p); out[0] = p[1]; }
  out[1] = q[9];
  for (int i = 0; i < 200000; ++i) free(malloc(16));"""
    outcome = on_the_heap(body, threads=1)
    told = [sentence(found) for found in outcome.findings]
    assert len(told) == 2 and "freed at line 9" in told[0] and "malloc(32)" not in told[0], told
    assert "past the end of the 32-byte allocation malloc(32)" in told[1], told


def test_the_heap_is_full_at_eight_megabytes_and_aligned() -> None:
    out = np.zeros(4, np.int32)
    source = kernels("heap.cu", body="")
    assert run(source, [out], [1 << 19], block=(1, 1, 1), kernel="fills").findings == ()
    assert out.tolist() == [15, 0, 0, 0]


@pytest.mark.parametrize("call", ["call (%r2), direct, (%r1);", "call %rd1, (%r1), proto;"])
def test_a_call_that_passes_a_register_is_refused(call: str) -> None:
    text = kernels(
        "hidden_kernel.ptx",
        call=f"proto: .callprototype ()_ (.param .b32 _); .reg .b32 %r<9>; {call}",
    )
    with pytest.raises(RefusedProgram, match="this form of call"):
        run_ptx(text, [], kernel="kernel")
