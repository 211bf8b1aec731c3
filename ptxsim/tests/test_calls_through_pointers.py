"""Calls through pointers, and the heap that kernels have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness import run, run_ptx, sentence
from plans import launched, planned
from ptxsim.findings.finding import Kind
from ptxsim.frontend import read_module
from ptxsim.lowering.notes import origins, tensor_core_notes
from ptxsim.outcome import RefusedProgram

MODULE = """\
.version 7.0
.target sm_80
.address_size 64
.visible .entry hidden() {{
  .reg .f32 %f<9>;
  .reg .b32 %r<7>;
  .loc 1 7 0
  mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {{%f1, %f2, %f3, %f4}}, {{%r1, %r2, %r3, %r4}},
    {{%r5, %r6}}, {{%f1, %f2, %f3, %f4}};
  ret;
}}
.func direct() {{
  .loc 2 1 0
  ret;
}}
.visible .entry kernel() {{
  .reg .b64 %rd<2>;
  mov.u64 %rd1, hidden;
  {call}
  ret;
}}
.file 1 "/usr/include/library.h"
.file 2 "sgemm.cu"
"""
DIRECT = "call direct, ();"
BY_POINTER = "{ proto : .callprototype ()_ (); call %rd1, (), proto; }"


@pytest.mark.parametrize(("call", "hidden"), [(DIRECT, False), (BY_POINTER, True)])
def test_a_pointer_may_lead_into_a_kernel_that_nobody_launches(call: str, hidden: bool) -> None:
    module = read_module(MODULE.format(call=call), Path("/nowhere"))
    plan = planned((), launched("kernel"))
    kinds = [note.kind for note in tensor_core_notes(module, [plan])]
    assert kinds == [Kind.TENSOR_CORE] * hidden
    assert ("kernel" in origins(module)) == hidden


FUNCTIONS = """
struct Wide { double a; char b[3]; };
using Step = Wide (*)(Wide, int);
extern __device__ Step steps[3];
__device__ Wide add(Wide w, int n) { return {w.a + n, {w.b[2], w.b[0], w.b[1]}}; }
__device__ Wide twice(Wide w, int n) { return add(add(w, n), n); }
__device__ Wide again(Wide w, int n) { return n ? steps[n % 3](steps[1](w, 1), n - 1) : w; }
__device__ Step steps[3] = {add, twice, again};
__device__ Step none;
__device__ void nothing(float*) {}
__device__ void (*other)(float*) = nothing;
"""


def test_lanes_that_call_different_functions_part_and_meet_again() -> None:
    source = f"""{FUNCTIONS}
extern "C" __global__ void k(float* out, int n) {{
  const Wide w = steps[threadIdx.x % 3](Wide{{1, {{1, 2, 3}}}}, threadIdx.x);
  out[threadIdx.x] = w.a + 100 * w.b[0] + __syncthreads_count(w.a > 0);
}}"""
    out = np.zeros(64, np.float32)

    def call(which: int, a: int, b: list[int], n: int) -> tuple[int, list[int]]:
        if which == 0:
            return a + n, [b[2], b[0], b[1]]
        if which == 1:
            return call(0, *call(0, a, b, n), n)
        return call(n % 3, *call(1, a, b, 1), n - 1) if n else (a, b)

    assert run(source, [out], [0], block=(64, 1, 1)).findings == ()
    want = [call(t % 3, 1, [1, 2, 3], t) for t in range(64)]
    assert out.tolist() == [a + 100 * b[0] + 64 for a, b in want]


@pytest.mark.parametrize(
    ("pointer", "says"),
    [
        ("none", "calls a function through a null pointer at line 15"),
        ("(Step)out", "no function of these parameters and this result lies at"),
        ("(Step)other", "no function of these parameters and this result lies at"),
    ],
)
def test_a_pointer_to_no_such_function_is_found_with_its_line(pointer: str, says: str) -> None:
    source = f"""{FUNCTIONS}
extern "C" __global__ void k(float* out, int n) {{
  const Step step = n > 7 ? steps[0] : {pointer};
  out[0] = step(Wide{{}}, 1).a;
}}"""
    (found,) = run(source, [np.zeros(1, np.float32)], [7]).findings
    assert found.kind == "out-of-bounds"
    assert says in sentence(found)


HEAP = """
__device__ float* kept;
extern "C" __global__ void k(float* out, int n) {
  __shared__ float* s;
  float* p = threadIdx.x ? nullptr : static_cast<float*>(malloc(4 * n));
  if (p) { p[0] = 7; s = p; }
  BODY
}"""


@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        ("if (p) { out[0] = p[0]; free(p); free(nullptr); }", None, ""),
        ("if (p) { delete[] p; p = new float[n]; p[n - 1] = 1; out[0] = p[n - 1]; }", None, ""),
        ("if (p) { free(p); out[0] = *p; }", "out-of-bounds", "reads 4 bytes at malloc(12)[0], w"),
        ("if (p) out[0] = p[n];", "out-of-bounds", "0 bytes past the end of the 12-byte"),
        ("if (p) p[-1] = 1;", "out-of-bounds", "4 bytes before the start of the 12-byte"),
        ("if (p) { free(p); free(p); }", "out-of-bounds", "frees malloc(12) a second time at"),
        ("if (p) free(p + 1);", "out-of-bounds", "frees malloc(12)[1] at line 7, and no malloc"),
        ("if (p) free(out);", "out-of-bounds", "no malloc or new in a kernel returned"),
        ("if (p) out[0] = p[1];", "uninitialized-read", "never written"),
        ("__syncthreads(); s[threadIdx.x / 32] = threadIdx.x;", "race", "two threads of a block"),
        ("__syncthreads(); out[threadIdx.x] = s[0]; if (p) free(p);", "race", "malloc(12)[0]"),
        (
            "__syncthreads(); out[threadIdx.x] = s[0]; __syncthreads(); if (p) free(p);",
            None,
            "",
        ),
    ],
)
def test_memory_of_the_heap(body: str, kind: str | None, says: str) -> None:
    outcome = run(HEAP.replace("BODY", body), [np.zeros(64, np.float32)], [3], block=(64, 1, 1))
    told = [sentence(found) for found in outcome.findings]
    assert {found.kind for found in outcome.findings} == ({kind} if kind else set()), told
    assert not kind or any(says in each for each in told), told


def test_findings_keep_their_memory_when_the_heap_forgets_what_was_freed() -> None:
    body = """
  float* q = static_cast<float*>(malloc(32));
  if (p) { free(p); out[0] = p[1]; }
  out[1] = q[9];
  for (int i = 0; i < 200000; ++i) free(malloc(16));"""
    outcome = run(HEAP.replace("BODY", body), [np.zeros(64, np.float32)], [3], block=(1, 1, 1))
    told = [sentence(found) for found in outcome.findings]
    assert len(told) == 2 and "freed at line 9" in told[0] and "malloc(32)" not in told[0], told
    assert "past the end of the 32-byte allocation malloc(32)" in told[1], told


def test_the_heap_is_full_at_eight_megabytes_and_aligned() -> None:
    source = """
struct alignas(256) Line { float x[64]; };
extern "C" __global__ void k(int* out, int n) {
  int got = 0;
  while (void* p = malloc(n)) out[1] |= (size_t)p % 16, ++got;
  out[0] = got;
  out[2] = malloc(9 << 20) || malloc(~0ull);
  out[3] = new Line == nullptr;
}"""
    out = np.zeros(4, np.int32)
    assert run(source, [out], [1 << 19], block=(1, 1, 1)).findings == ()
    assert out.tolist() == [15, 0, 0, 0]


@pytest.mark.parametrize("call", ["call (%r2), direct, (%r1);", "call %rd1, (%r1), proto;"])
def test_a_call_that_passes_a_register_is_refused(call: str) -> None:
    text = MODULE.format(call=f"proto: .callprototype ()_ (.param .b32 _); .reg .b32 %r<9>; {call}")
    with pytest.raises(RefusedProgram, match="this form of call"):
        run_ptx(text, [], kernel="kernel")
