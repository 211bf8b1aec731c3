"""The simulator on kernels that nvcc compiled: values as the GPU would give, findings by line."""

from __future__ import annotations

import numpy as np
import pytest

from harness import run, sentence
from ptxsim.findings.finding import Severity
from ptxsim.outcome import RefusedProgram, SimOutcome


def line_of(source: str, marker: str) -> int:
    return next(i for i, text in enumerate(source.splitlines(), 1) if marker in text)


def only(outcome: SimOutcome, kind: str) -> str:
    """What students are told of the one finding there is."""
    assert [f.kind for f in outcome.findings] == [kind], outcome.findings
    return sentence(outcome.findings[0])


def floats(count: int) -> np.ndarray:
    return np.arange(1, count + 1, dtype=np.float32)


# --- control flow


def test_divergent_loop_with_break_and_call():
    source = """
__device__ __noinline__ int twice(int x) { return x * 2; }
extern "C" __global__ void k(int* a, int* b) {
  int t = threadIdx.x, s = 0;
  for (int i = 0; i < 100; ++i) {
    if (i == t) break;
    s += i % 3 == 0 ? twice(i) : i;
  }
  b[t] = s;
}
"""
    a, b = np.zeros(64, np.int32), np.zeros(64, np.int32)
    outcome = run(source, [a, b], block=(64, 1, 1))
    want = [sum(2 * i if i % 3 == 0 else i for i in range(t)) for t in range(64)]
    assert b.tolist() == want
    assert outcome.findings == ()


def test_switch_uses_a_branch_table():
    cases = "".join(f"case {i}: r = {i * i + 1}; b[33] = a[{i}]; break;\n" for i in range(12))
    source = f"""
extern "C" __global__ void k(volatile int* a, volatile int* b) {{
  int r = -1;
  switch (a[threadIdx.x]) {{ {cases} }}
  b[threadIdx.x] = r;
}}
"""
    a = (np.arange(34, dtype=np.int32) * 7) % 15
    b = np.zeros(34, np.int32)
    run(source, [a, b])
    assert b[:32].tolist() == [int(x * x + 1) if x < 12 else -1 for x in a[:32]]


def test_recursion_keeps_every_level_apart():
    source = """
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
extern "C" __global__ void k(int* a, int* b) { b[threadIdx.x] = fib(threadIdx.x % 11); }
"""
    a, b = np.zeros(32, np.int32), np.zeros(32, np.int32)
    run(source, [a, b])
    fib = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55]
    assert b.tolist() == [fib[t % 11] for t in range(32)]


def test_names_in_the_braces_of_inline_assembly_stay_inside():
    """Two texts, one of them inlined twice, share the names of labels and registers."""
    source = """
__device__ __forceinline__ int triangle(int n) {
  int r;
  asm volatile("{ .reg .s32 i<2>; mov.s32 %0, 0; mov.s32 i0, 0;"
      "LOOP: { .reg .pred q; setp.ge.s32 q, i0, %1; @q bra DONE; }"
      ".reg .pred q; add.s32 %0, %0, i0; add.s32 i0, i0, 1; setp.lt.s32 q, i0, 99; @q bra LOOP;"
      "DONE: }" : "=&r"(r) : "r"(n));
  return r;
}
__device__ __forceinline__ double halves(int n) {
  double r;
  asm volatile("{ .reg .f64 i<2>; .reg .s32 q; .reg .pred p; .shared .s32 kept[32];"
      ".reg .u32 at; mov.u32 at, %tid.x; shl.b32 at, at, 2; mov.u32 q, kept; add.u32 at, at, q;"
      "st.shared.s32 [at], %1; mov.f64 i0, 0d3FE0000000000000; mov.f64 %0, 0d0000000000000000;"
      "LOOP: ld.shared.s32 q, [at]; setp.le.s32 p, q, 0; @p bra.uni DONE; add.f64 %0, %0, i0;"
      "sub.s32 q, q, 1; st.shared.s32 [at], q; bra.uni LOOP;"
      "DONE: }" : "=&d"(r) : "r"(n));
  return r;
}
extern "C" __global__ void k(const int* a, int* b) {
  int t = threadIdx.x, x = triangle(a[t]);
  b[t] = x + 1000 * triangle(a[t] + 1) + (int)(2 * halves(t));
}
"""
    a, b = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    outcome = run(source, [a, b], seconds=5)
    assert outcome.findings == () and outcome.stopped is None
    assert b.tolist() == [n * (n - 1) // 2 + 500 * (n + 1) * n + n for n in range(32)]


# --- arithmetic that nvcc emits seldom


def test_products_with_a_carry() -> None:
    """64 · 64 + 64 bits in pieces of 32."""
    source = """
extern "C" __global__ void k(const unsigned* a, unsigned* b) {
  a += 6 * threadIdx.x, b += 4 * threadIdx.x;
  unsigned r0, r1, r2, r3;
  asm("mad.lo.cc.u32 %0, %4, %6, %8; madc.hi.cc.u32 %1, %4, %6, %9; madc.hi.u32 %2, %4, %7, 0;"
      "mad.lo.cc.u32 %1, %4, %7, %1; madc.hi.cc.u32 %2, %5, %6, %2; madc.hi.u32 %3, %5, %7, 0;"
      "mad.lo.cc.u32 %1, %5, %6, %1; madc.lo.cc.u32 %2, %5, %7, %2; addc.u32 %3, %3, 0;"
      : "=&r"(r0), "=&r"(r1), "=&r"(r2), "=&r"(r3)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]));
  b[0] = r0, b[1] = r1, b[2] = r2, b[3] = r3;
}
"""
    a = np.random.default_rng(1).integers(0, 2**32, (32, 6), np.uint32)
    a[:4] = 2**32 - 1
    b = np.zeros((32, 4), np.uint32)
    outcome = run(source, [a, b])
    assert outcome.findings == ()
    for row, got in zip(a, b, strict=True):
        x, y, z = (int.from_bytes(part.tobytes(), "little") for part in row.reshape(3, 2))
        assert int.from_bytes(got.tobytes(), "little") == x * y + z


@pytest.mark.parametrize(("kind", "shift"), [("f16", 0), ("bf16", 16)])
def test_halves_are_rounded_in_the_direction_asked_for(kind: str, shift: int) -> None:
    convert = "".join(
        f'asm("cvt.{how}.{kind}.f32 %0, %1;" : "=h"(r) : "f"(a[t])); b[3 * t + {at}] = r;'
        for at, how in enumerate(("rm", "rz", "rp"))
    )
    source = f"""
extern "C" __global__ void k(const float* a, unsigned short* b) {{
  unsigned short r;
  const int t = threadIdx.x;
  {convert}
}}
"""
    random = np.random.default_rng(3)
    values = random.standard_normal(256, np.float32) * 10.0 ** random.integers(-9, 6, 256)
    values[:4] = 70000, -70000, 3.4e38, -3.4e38
    a = values.astype(np.float32)
    b = np.zeros((256, 3), np.uint16)
    outcome = run(source, [a, b], block=(256, 1, 1), arch="sm_90")
    assert outcome.findings == ()
    bits = np.arange(65536, dtype=np.uint32)
    every = (bits << shift).view(np.float32) if shift else bits.astype(np.uint16).view(np.float16)
    known = np.unique(every[~np.isnan(every)].astype(np.float64))
    below = known[np.searchsorted(known, a.astype(np.float64), "right") - 1]
    above = known[np.searchsorted(known, a.astype(np.float64), "left")]
    got = every[b].astype(np.float64)
    assert (got[:, 0] == below).all()
    assert (got[:, 1] == np.where(a > 0, below, above)).all()
    assert (got[:, 2] == above).all()


# --- clocks and multiprocessors


def test_time_goes_on_and_blocks_sit_on_different_multiprocessors() -> None:
    source = """
extern "C" __global__ void k(unsigned long long* a, unsigned long long* b) {
  unsigned long long t0 = clock64(), t1 = clock64(), from, to, low;
  unsigned sm, sms, warp, c0 = clock(), c1 = clock(), half;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(from));
  while (clock64() < t1 + 100000) {}
  __nanosleep(1000);
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(to));
  asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(half));
  asm volatile("mov.b64 %0, {%1, 0};" : "=l"(low) : "r"(half));
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  asm volatile("mov.u32 %0, %%nsmid;" : "=r"(sms));
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
  bool on = t1 > t0 && c1 != c0 && to - from >= 100000 && unsigned(low - to) < 100000;
  if (!(threadIdx.x & 31)) b[2 * blockIdx.x + warp] = on && sm < sms ? sm : 99;
}
"""
    b = np.full(8, 77, np.uint64)
    outcome = run(source, [np.zeros(1, np.uint64), b], grid=(4, 1, 1), block=(64, 1, 1))
    assert outcome.findings == () and outcome.stopped is None
    assert b.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_texture_is_refused_in_words_that_name_it() -> None:
    source = """
extern "C" __global__ void k(const float* a, float* b) {
  b[0] = tex1Dfetch<float>((cudaTextureObject_t)a, 1);  // HERE
}
"""
    with pytest.raises(RefusedProgram, match="textures are not supported") as refused:
        run(source, [floats(4), np.zeros(1, np.float32)])
    (finding,) = refused.value.findings
    assert finding.place is not None and finding.place.line == line_of(source, "HERE")


# --- barriers


def test_threads_that_returned_do_not_hold_a_barrier():
    source = """
extern "C" __global__ void k(float* a, float* b) {
  if (threadIdx.x >= 40) return;
  __syncthreads();
  b[threadIdx.x] = a[threadIdx.x];
}
"""
    outcome = run(source, [floats(64), np.zeros(64, np.float32)], block=(64, 1, 1))
    assert outcome.stopped is None
    assert outcome.findings == ()


def test_block_wide_votes():
    source = """
extern "C" __global__ void k(int* a, int* b) {
  int t = threadIdx.x;
  b[t] = __syncthreads_count(a[t]) + 1000 * __syncthreads_or(t == 5)
       + 2000 * __syncthreads_and(t < 9);
}
"""
    a, b = np.array([i % 3 == 0 for i in range(96)], np.int32), np.zeros(96, np.int32)
    outcome = run(source, [a, b], block=(96, 1, 1))
    assert set(b.tolist()) == {32 + 1000}
    assert outcome.findings == ()


def test_named_partial_barriers_order_only_who_takes_part():
    source = """
extern "C" __global__ void k(float* a, float* b) {
  __shared__ float s[32];
  int t = threadIdx.x, w = t / 32;
  if (w == 0) { s[t] = a[t]; asm volatile("bar.arrive 1, 64;" ::: "memory"); }
  else if (w == 1) { asm volatile("bar.sync 1, 64;" ::: "memory"); b[t - 32] = s[t - 32]; }
  else b[t - 32] = s[t - 64];  // HERE
}
"""
    outcome = run(source, [floats(32), np.zeros(64, np.float32)], block=(96, 1, 1))
    assert only(outcome, "race").startswith("in shared memory")
    assert outcome.findings[0].place.line == line_of(source, "HERE")


def test_deadlock_is_told_apart_from_a_slow_kernel():
    source = """
extern "C" __global__ void k(float* a, float* b) {
  if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;");  // HERE
  b[threadIdx.x] = a[threadIdx.x];
}
"""
    outcome = run(source, [floats(64), np.zeros(64, np.float32)], block=(64, 1, 1))
    assert outcome.stopped == "deadlock"
    assert outcome.findings[0].place.line == line_of(source, "HERE")


# --- races


RACE = """
extern "C" __global__ void k(float* a, float* b) {{
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = a[t];  // WRITE
  {sync}
  b[t] = s[t ^ {partner}];  // READ
}}
"""


@pytest.mark.parametrize(
    ("sync", "partner", "races"),
    [
        ("", 32, True),
        ("", 1, True),
        ("__syncwarp();", 1, False),
        ("__syncwarp();", 32, True),
        ("__syncthreads();", 32, False),
    ],
)
def test_shared_race_needs_the_right_barrier(sync: str, partner: int, races: bool):
    source = RACE.format(sync=sync, partner=partner)
    outcome = run(source, [floats(64), np.zeros(64, np.float32)], block=(64, 1, 1))
    assert [f.kind for f in outcome.findings if f.severity is Severity.ERROR] == (
        ["race"] if races else []
    ) or (races and {f.kind for f in outcome.findings} <= {"race", "uninitialized-read"})
    if races:
        lines = {f.place.line for f in outcome.findings}
        assert lines <= {line_of(source, "READ"), line_of(source, "WRITE")}


# --- memory


def test_out_of_bounds_names_array_distance_and_thread():
    source = """
extern "C" __global__ void k(float* a, float* b) {
  b[threadIdx.x] = a[threadIdx.x + 1];  // HERE
}
"""
    outcome = run(source, [floats(32), np.zeros(32, np.float32)])
    message = only(outcome, "out-of-bounds")
    assert "block (0,0,0) thread (31,0,0) reads 4 bytes at A[32]" in message
    assert "0 bytes past the end of the 128-byte allocation A" in message
    assert outcome.findings[0].place.line == line_of(source, "HERE")


def test_undefined_values_are_followed_to_the_result():
    source = """
extern "C" __global__ void k(float* a, float* b, float* c) {
  __shared__ float s[64];
  int t = threadIdx.x;
  if (t < 16) s[t] = a[t];
  __syncthreads();
  float x = s[t];  // HERE
  c[t] = x * 2.0f;
}
"""
    outcome = run(source, [floats(32), floats(32), np.zeros(32, np.float32)])
    assert outcome.findings[0].kind == "uninitialized-read"
    assert outcome.findings[0].place.line == line_of(source, "HERE")
    assert outcome.findings[0].thread == (16, 0, 0)


def test_two_byte_neighbours_are_no_race():
    source = """
#include <cuda_fp16.h>
extern "C" __global__ void k(float* a, float* b) {
  __shared__ __half s[64];
  int t = threadIdx.x;
  s[t] = __float2half(a[t]);
  __syncthreads();
  b[t] = __half2float(s[63 - t]);
}
"""
    b = np.zeros(64, np.float32)
    outcome = run(source, [floats(64), b], block=(64, 1, 1))
    assert outcome.findings == ()
    assert b.tolist() == floats(64)[::-1].tolist()


# --- asynchronous copies


CP_ASYNC = """
#include <cuda_pipeline.h>
extern "C" __global__ void k(float* a, float* b) {{
  __shared__ float s[64];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&s[t], &a[t], 4);  // COPY
  __pipeline_commit();
  {wait}
  {sync}
  b[t] = s[63 - t];  // READ
}}
"""


@pytest.mark.parametrize(
    ("wait", "sync", "says"),
    [
        ("__pipeline_wait_prior(0);", "__syncthreads();", None),
        ("", "__syncthreads();", "cp.async not waited for"),
        ("__pipeline_wait_prior(1);", "__syncthreads();", "cp.async not waited for"),
        ("__pipeline_wait_prior(0);", "", "in shared memory"),
    ],
)
def test_cp_async(wait: str, sync: str, says: str | None):
    source = CP_ASYNC.format(wait=wait, sync=sync)
    b = np.zeros(64, np.float32)
    outcome = run(source, [floats(64), b], block=(64, 1, 1))
    if says is None:
        assert outcome.findings == ()
        assert b.tolist() == floats(64)[::-1].tolist()
    else:
        assert any(says in sentence(f) for f in outcome.findings)
        # A copy still under way at the read may hide behind the line of the copy itself.
        assert {f.place.line for f in outcome.findings} <= {
            line_of(source, "READ"),
            line_of(source, "COPY"),
        }


# --- warps


def test_shuffles_votes_and_matches():
    source = """
extern "C" __global__ void k(int* a, int* b) {
  int t = threadIdx.x, v = a[t];
  int sum = v;
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  int up = __shfl_up_sync(~0u, v, 3, 8), down = __shfl_down_sync(~0u, v, 5);
  int at = __shfl_sync(~0u, v, t + 1, 16);
  unsigned ballot = __ballot_sync(~0u, v & 1);
  unsigned same = __match_any_sync(~0u, v % 4);
  b[t] = sum; b[t + 32] = up; b[t + 64] = down; b[t + 96] = at;
  b[t + 128] = ballot; b[t + 160] = same; b[t + 192] = __reduce_max_sync(~0u, v);
  b[t + 224] = __any_sync(~0u, v == 3) + 2 * __all_sync(~0u, v > 0);
}
"""
    a = np.arange(1, 33, dtype=np.int32) * 3 % 17
    b = np.zeros(256, np.int32)
    outcome = run(source, [a, b])
    t = np.arange(32)
    assert outcome.findings == ()
    assert (b[:32] == a.sum()).all()
    assert b[32:64].tolist() == np.where(t % 8 >= 3, a[np.maximum(t - 3, 0)], a).tolist()
    assert b[64:96].tolist() == np.where(t + 5 < 32, a[np.minimum(t + 5, 31)], a).tolist()
    assert b[96:128].tolist() == a[t // 16 * 16 + (t + 1) % 16].tolist()
    assert b.view(np.uint32)[128] == sum(1 << i for i in range(32) if a[i] & 1)
    assert b.view(np.uint32)[160] == sum(1 << i for i in range(32) if a[i] % 4 == a[0] % 4)
    assert b[192] == a.max()
    assert b[224] == (1 if 3 in a else 0) + 2 * int((a > 0).all())


# --- arithmetic


def test_fma_rounds_once():
    source = """
extern "C" __global__ void k(float* a, float* b) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  b[t] = fmaf(a[t], a[t + 4096], a[t + 8192]);
}
"""
    rng = np.random.default_rng(7)
    a = (rng.standard_normal(12288) * np.exp2(rng.integers(-20, 20, 12288))).astype(np.float32)
    a[8192:] = -(a[:4096].astype(np.float64) * a[4096:8192]).astype(np.float32)  # cancellation
    b = np.zeros(4096, np.float32)
    run(source, [a, b], grid=(16, 1, 1), block=(256, 1, 1))
    exact = a[:4096].astype(np.float64) * a[4096:8192] + a[8192:].astype(np.float64)
    assert b.tolist() == exact.astype(np.float32).tolist()


def test_half_precision_matches_numpy():
    source = """
#include <cuda_fp16.h>
extern "C" __global__ void k(float* a, float* b) {
  int t = threadIdx.x;
  __half x = __float2half(a[t]), y = __float2half(a[t + 256]);
  b[t] = __half2float(__hadd(x, y));
  b[t + 256] = __half2float(__hmul(x, y));
  b[t + 512] = __half2float(x);
}
"""
    rng = np.random.default_rng(5)
    a = (rng.standard_normal(512) * np.exp2(rng.integers(-20, 14, 512))).astype(np.float32)
    b = np.zeros(768, np.float32)
    run(source, [a, b], block=(256, 1, 1))
    with np.errstate(over="ignore"):
        x, y = a[:256].astype(np.float16), a[256:].astype(np.float16)
        want = np.concatenate([x + y, x * y, x]).astype(np.float32)
    assert b.tolist() == want.tolist()


def test_tensor_core_product_of_tf32():
    source = """
extern "C" __global__ void k(const float* a, const float* b, float* c) {
  int l = threadIdx.x, g = l / 4, q = l % 4;
  unsigned A[4], B[2]; float C[4] = {};
  for (int i = 0; i < 4; ++i) A[i] = __float_as_uint(a[(g + 8 * (i & 1)) * 8 + q + 4 * (i >> 1)]);
  for (int i = 0; i < 2; ++i) B[i] = __float_as_uint(b[(q + 4 * i) * 8 + g]);
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
               "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
    : "+f"(C[0]), "+f"(C[1]), "+f"(C[2]), "+f"(C[3])
    : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]));
  for (int i = 0; i < 4; ++i) c[(g + 8 * (i >> 1)) * 8 + 2 * q + (i & 1)] = C[i];
}
"""
    rng = np.random.default_rng(3)
    a, b = (
        rng.integers(-9, 9, (16, 8)).astype(np.float32),
        rng.integers(-9, 9, (8, 8)).astype(np.float32),
    )
    c = np.zeros((16, 8), np.float32)
    outcome = run(source, [a, b, c])
    assert (c == a @ b).all()
    assert "mma.sync" in only(outcome, "tensor-core")
    assert outcome.findings[0].severity is Severity.NOTE


# --- counts, limits of knowledge


def test_counts_of_a_copy():
    source = """
extern "C" __global__ void k(float* a, float* b) {
  b[threadIdx.x] = a[threadIdx.x * 8];  // HERE
}
"""
    outcome = run(source, [floats(512), np.zeros(64, np.float32)], block=(64, 1, 1))
    line = next(c for c in outcome.lines if c.line == line_of(source, "HERE"))
    assert line.global_requests == 4  # two warps, a load and a store each
    assert line.global_sectors == 2 * (32 + 4)
    assert line.global_bytes == 64 * 8


@pytest.mark.parametrize(
    ("index", "wavefronts"), [("t", 1), ("2 * t", 2), ("32 * (t % 4)", 4), ("0", 1)]
)
def test_bank_conflicts(index: str, wavefronts: int):
    source = f"""
extern "C" __global__ void k(float* a, float* b) {{
  __shared__ float s[128];
  int t = threadIdx.x;
  for (int i = t; i < 128; i += 32) s[i] = a[i];
  __syncthreads();
  b[t] = s[{index}];  // HERE
}}
"""
    outcome = run(source, [floats(128), np.zeros(32, np.float32)])
    line = next(c for c in outcome.lines if c.line == line_of(source, "HERE"))
    assert line.shared_wavefronts == wavefronts * line.shared_requests


def test_lanes_that_take_no_part_object_to_no_shared_pass():
    """Sixteen bytes each: a quarter of the warp alone, half of it, every other lane, every lane but
    one of a broadcast."""
    source = """
extern "C" __global__ void k(float* a, float* b) {
  __shared__ float4 s[32];
  int t = threadIdx.x;
  float* f = (float*)s;
  for (int i = t; i < 128; i += 32) f[i] = a[i];
  __syncthreads();
  float4 sum = make_float4(0, 0, 0, 0), v;
  if (t < 8) { v = s[t]; sum.x = v.x + v.y + v.z + v.w; }  // QUARTER
  if (t < 16) { v = s[t + 8]; sum.y = v.x + v.y + v.z + v.w; }  // HALF
  if (t % 2) { v = s[t / 2]; sum.z = v.x + v.y + v.z + v.w; }  // EVERY OTHER
  if (t != 5) { v = s[3]; sum.w = v.x + v.y + v.z + v.w; }  // BUT ONE
  b[t] = sum.x + sum.y + sum.z + sum.w;
}
"""
    outcome = run(source, [floats(128), np.zeros(32, np.float32)])

    for mark, wavefronts in (("QUARTER", 1), ("HALF", 2), ("EVERY OTHER", 2), ("BUT ONE", 2)):
        line = next(c for c in outcome.lines if c.line == line_of(source, mark))
        assert line.shared_requests == 1
        assert line.shared_wavefronts == wavefronts, mark


def test_unknown_instruction_names_itself_and_its_line():
    source = """
extern "C" __global__ void k(float* a, float* b) {
  int r, s;
  asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%2}, {%2, %2};"
               : "=r"(r), "=r"(s) : "r"(1));  // HERE
  b[0] = r + s;
}
"""
    with pytest.raises(RefusedProgram, match=rf"mma\.sync.*sgemm\.cu:{line_of(source, 'HERE')}"):
        run(source, [floats(1), floats(1)])


# --- mbarrier


PRODUCER_CONSUMER = """
#include <cuda/barrier>
extern "C" __global__ void k(float* a, float* b) {{
  __shared__ float s[64];
  __shared__ cuda::barrier<cuda::thread_scope_block> full;
  if (threadIdx.x % {makers} == 0) init(&full, 64);
  {sync}
  int t = threadIdx.x;
  for (int i = 0; i < 4; ++i) {{
    s[t] = a[i * 64 + t];
    {wait}
    b[i * 64 + t] = s[63 - t];  // HERE
    full.arrive_and_wait();
  }}
}}
"""


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("makers", "sync", "wait", "clean"),
    [
        (64, "__syncthreads();", "full.arrive_and_wait();", True),
        (64, "__syncthreads();", "", False),
        (64, "", "full.arrive_and_wait();", False),
        (32, "__syncthreads();", "full.arrive_and_wait();", True),  # every warp makes the same one
        pytest.param(32, "", "full.arrive_and_wait();", False, marks=pytest.mark.slow),
    ],
)
def test_cuda_barrier(makers: int, sync: str, wait: str, clean: bool):
    """makers: of so many threads each, one initialises the barrier."""
    source = PRODUCER_CONSUMER.format(makers=makers, sync=sync, wait=wait)
    a, b = floats(256), np.zeros(256, np.float32)
    outcome = run(source, [a, b], block=(64, 1, 1), seconds=5)
    assert (outcome.findings == () and outcome.stopped is None) == clean, outcome.findings
    if clean:
        assert (b.reshape(4, 64) == a.reshape(4, 64)[:, ::-1]).all()


BULK = """
extern "C" __global__ void k(const float* a, float* b) {{
  __shared__ alignas(16) float s[256];
  __shared__ alignas(8) unsigned long long bar;
  unsigned at = __cvta_generic_to_shared(&bar), to = __cvta_generic_to_shared(s);
  if (threadIdx.x == 0) {{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }}
  __syncthreads();
  if (threadIdx.x == 0) {{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" :: "r"(at) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], 1024, [%2];" :: "r"(to), "l"(a), "r"(at) : "memory");
  }}
  {wait}
  b[threadIdx.x] = s[255 - threadIdx.x];
}}
"""
WAIT = """
  asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; "
               "@!p bra W; }" :: "r"(at) : "memory");
"""


@pytest.mark.parametrize("waits", [True, False])
def test_bulk_copy_is_seen_through_its_barrier(waits: bool):
    source = BULK.format(wait=WAIT if waits else "")
    b = np.zeros(256, np.float32)
    outcome = run(source, [floats(256), b], block=(256, 1, 1), arch="sm_90")
    if waits:
        assert outcome.findings == ()
        assert b.tolist() == floats(256)[::-1].tolist()
    else:
        assert any("in shared memory" in sentence(f) for f in outcome.findings)
