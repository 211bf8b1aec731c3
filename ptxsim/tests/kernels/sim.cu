#include <cuda/barrier>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#define KERNEL extern "C" __global__ void

// --- control flow

__device__ __noinline__ int twice(int x) { return x * 2; }

KERNEL breaks_out(int* a, int* b) {
  int t = threadIdx.x, s = 0;
  for (int i = 0; i < 100; ++i) {
    if (i == t) break;
    s += i % 3 == 0 ? twice(i) : i;
  }
  b[t] = s;
}

#define CASE(i)    \
  case i:          \
    r = i * i + 1; \
    b[33] = a[i];  \
    break;

KERNEL switches(volatile int* a, volatile int* b) {
  int r = -1;
  // clang-format off
  switch (a[threadIdx.x]) {
    CASE(0) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5)
    CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11)
  }
  // clang-format on
  b[threadIdx.x] = r;
}

__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

KERNEL recursion(int* a, int* b) { b[threadIdx.x] = fib(threadIdx.x % 11); }

// Two texts, one of them inlined twice, share the names of labels and registers.
__device__ __forceinline__ int triangle(int n) {
  int r;
  asm volatile(
      "{ .reg .s32 i<2>; mov.s32 %0, 0; mov.s32 i0, 0;"
      "LOOP: { .reg .pred q; setp.ge.s32 q, i0, %1; @q bra DONE; }"
      ".reg .pred q; add.s32 %0, %0, i0; add.s32 i0, i0, 1; setp.lt.s32 q, i0, 99; @q bra LOOP;"
      "DONE: }"
      : "=&r"(r)
      : "r"(n));
  return r;
}

__device__ __forceinline__ double halves(int n) {
  double r;
  asm volatile(
      "{ .reg .f64 i<2>; .reg .s32 q; .reg .pred p; .shared .s32 kept[32];"
      ".reg .u32 at; mov.u32 at, %tid.x; shl.b32 at, at, 2; mov.u32 q, kept; add.u32 at, at, q;"
      "st.shared.s32 [at], %1; mov.f64 i0, 0d3FE0000000000000; mov.f64 %0, 0d0000000000000000;"
      "LOOP: ld.shared.s32 q, [at]; setp.le.s32 p, q, 0; @p bra.uni DONE; add.f64 %0, %0, i0;"
      "sub.s32 q, q, 1; st.shared.s32 [at], q; bra.uni LOOP;"
      "DONE: }"
      : "=&d"(r)
      : "r"(n));
  return r;
}

KERNEL braces_of_assembly(const int* a, int* b) {
  int t = threadIdx.x, x = triangle(a[t]);
  b[t] = x + 1000 * triangle(a[t] + 1) + (int)(2 * halves(t));
}

// --- arithmetic that nvcc emits seldom

KERNEL carries(const unsigned* a, unsigned* b) {
  a += 6 * threadIdx.x, b += 4 * threadIdx.x;
  unsigned r0, r1, r2, r3;
  asm("mad.lo.cc.u32 %0, %4, %6, %8; madc.hi.cc.u32 %1, %4, %6, %9; madc.hi.u32 %2, %4, %7, 0;"
      "mad.lo.cc.u32 %1, %4, %7, %1; madc.hi.cc.u32 %2, %5, %6, %2; madc.hi.u32 %3, %5, %7, 0;"
      "mad.lo.cc.u32 %1, %5, %6, %1; madc.lo.cc.u32 %2, %5, %7, %2; addc.u32 %3, %3, 0;"
      : "=&r"(r0), "=&r"(r1), "=&r"(r2), "=&r"(r3)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]));
  b[0] = r0, b[1] = r1, b[2] = r2, b[3] = r3;
}

#define DIRECTED(how, kind)                                                  \
  asm("cvt." #how "." #kind ".f32 %0, %1;" : "=h"(r) : "f"(a[threadIdx.x])); \
  *b++ = r;
#define ROUNDED(kind)                                           \
  KERNEL rounded_to_##kind(const float* a, unsigned short* b) { \
    unsigned short r;                                           \
    b += 3 * threadIdx.x;                                       \
    DIRECTED(rm, kind) DIRECTED(rz, kind) DIRECTED(rp, kind)    \
  }
ROUNDED(f16)
ROUNDED(bf16)

KERNEL multiplies_and_adds(float* a, float* b) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  b[t] = fmaf(a[t], a[t + 4096], a[t + 8192]);
}

KERNEL half_precision(float* a, float* b) {
  int t = threadIdx.x;
  __half x = __float2half(a[t]), y = __float2half(a[t + 256]);
  b[t] = __half2float(__hadd(x, y));
  b[t + 256] = __half2float(__hmul(x, y));
  b[t + 512] = __half2float(x);
}

KERNEL product_of_tf32(const float* a, const float* b, float* c) {
  int l = threadIdx.x, g = l / 4, q = l % 4;
  unsigned A[4], B[2];
  float C[4] = {};
  for (int i = 0; i < 4; ++i) A[i] = __float_as_uint(a[(g + 8 * (i & 1)) * 8 + q + 4 * (i >> 1)]);
  for (int i = 0; i < 2; ++i) B[i] = __float_as_uint(b[(q + 4 * i) * 8 + g]);
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(C[0]), "+f"(C[1]), "+f"(C[2]), "+f"(C[3])
      : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]));
  for (int i = 0; i < 4; ++i) c[(g + 8 * (i >> 1)) * 8 + 2 * q + (i & 1)] = C[i];
}

// --- clocks, multiprocessors, what there is not

KERNEL clocks(unsigned long long* a, unsigned long long* b) {
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

KERNEL unknown_instruction(float* a, float* b) {
  int r, s;
  asm volatile("mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %2}, "
               "{%2, %2}, {%2, %2}, %2, 0x0;"
               : "=r"(r), "=r"(s)
               : "r"(1));  // unknown instruction
  b[0] = r + s;
}

// --- barriers

KERNEL returns_early(float* a, float* b) {
  if (threadIdx.x >= 40) return;
  __syncthreads();
  b[threadIdx.x] = a[threadIdx.x];
}

KERNEL block_wide_votes(int* a, int* b) {
  int t = threadIdx.x;
  b[t] =
      __syncthreads_count(a[t]) + 1000 * __syncthreads_or(t == 5) + 2000 * __syncthreads_and(t < 9);
}

KERNEL partial_barriers(float* a, float* b) {
  __shared__ float s[32];
  int t = threadIdx.x, w = t / 32;
  if (w == 0) {
    s[t] = a[t];
    asm volatile("bar.arrive 1, 64;" ::: "memory");
  } else if (w == 1) {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    b[t - 32] = s[t - 32];
  } else {
    b[t - 32] = s[t - 64];  // takes no part
  }
}

KERNEL deadlock(float* a, float* b) {
  if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;");  // deadlock
  b[threadIdx.x] = a[threadIdx.x];
}

// --- races

enum class Sync { NONE, WARP, BLOCK };

template <int PARTNER, Sync SYNC>
__device__ void exchange(float* a, float* b) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = a[t];  // write
  if (SYNC == Sync::WARP) __syncwarp();
  if (SYNC == Sync::BLOCK) __syncthreads();
  b[t] = s[t ^ PARTNER];  // read
}
KERNEL race_32(float* a, float* b) { exchange<32, Sync::NONE>(a, b); }
KERNEL race_1(float* a, float* b) { exchange<1, Sync::NONE>(a, b); }
KERNEL syncwarp_1(float* a, float* b) { exchange<1, Sync::WARP>(a, b); }
KERNEL syncwarp_32(float* a, float* b) { exchange<32, Sync::WARP>(a, b); }
KERNEL syncthreads_32(float* a, float* b) { exchange<32, Sync::BLOCK>(a, b); }

// --- memory

KERNEL past_the_end(float* a, float* b) {
  b[threadIdx.x] = a[threadIdx.x + 1];  // past the end
}

KERNEL never_written(float* a, float* b, float* c) {
  __shared__ float s[64];
  int t = threadIdx.x;
  if (t < 16) s[t] = a[t];
  __syncthreads();
  float x = s[t];  // never written
  c[t] = x * 2.0f;
}

KERNEL two_byte_neighbours(float* a, float* b) {
  __shared__ __half s[64];
  int t = threadIdx.x;
  s[t] = __float2half(a[t]);
  __syncthreads();
  b[t] = __half2float(s[63 - t]);
}

// --- asynchronous copies

template <int WAIT>  // for all groups but so many; -1: for none
__device__ void cp_async(float* a, float* b, bool sync) {
  __shared__ float s[64];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&s[t], &a[t], 4);  // copy
  __pipeline_commit();
  if (WAIT >= 0) __pipeline_wait_prior(WAIT);
  if (sync) __syncthreads();
  b[t] = s[63 - t];  // read of the copy
}
KERNEL copy_right(float* a, float* b) { cp_async<0>(a, b, true); }
KERNEL copy_not_waited_for(float* a, float* b) { cp_async<-1>(a, b, true); }
KERNEL copy_waits_for_another(float* a, float* b) { cp_async<1>(a, b, true); }
KERNEL copy_without_barrier(float* a, float* b) { cp_async<0>(a, b, false); }

// --- warps

KERNEL warps(int* a, int* b) {
  int t = threadIdx.x, v = a[t];
  int sum = v;
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  int up = __shfl_up_sync(~0u, v, 3, 8), down = __shfl_down_sync(~0u, v, 5);
  int at = __shfl_sync(~0u, v, t + 1, 16);
  unsigned ballot = __ballot_sync(~0u, v & 1);
  unsigned same = __match_any_sync(~0u, v % 4);
  b[t] = sum;
  b[t + 32] = up;
  b[t + 64] = down;
  b[t + 96] = at;
  b[t + 128] = ballot;
  b[t + 160] = same;
  b[t + 192] = __reduce_max_sync(~0u, v);
  b[t + 224] = __any_sync(~0u, v == 3) + 2 * __all_sync(~0u, v > 0);
}

// --- counts

KERNEL copies(float* a, float* b) {
  b[threadIdx.x] = a[threadIdx.x * 8];  // counted
}

template <typename Index>
__device__ void from_banks(float* a, float* b, Index index) {
  __shared__ float s[128];
  int t = threadIdx.x;
  for (int i = t; i < 128; i += 32) s[i] = a[i];
  __syncthreads();
  b[t] = s[index(t)];  // banks
}
KERNEL banks_in_a_row(float* a, float* b) {
  from_banks(a, b, [](int t) { return t; });
}
KERNEL every_other_bank(float* a, float* b) {
  from_banks(a, b, [](int t) { return 2 * t; });
}
KERNEL one_bank_of_four(float* a, float* b) {
  from_banks(a, b, [](int t) { return 32 * (t % 4); });
}
KERNEL broadcast(float* a, float* b) {
  from_banks(a, b, [](int) { return 0; });
}

// Sixteen bytes each, and some lanes take no part.
KERNEL shared_passes(float* a, float* b) {
  __shared__ float4 s[32];
  int t = threadIdx.x;
  float* f = (float*)s;
  for (int i = t; i < 128; i += 32) f[i] = a[i];
  __syncthreads();
  float4 sum = make_float4(0, 0, 0, 0), v;
  // clang-format off
  if (t < 8) { v = s[t]; sum.x = v.x + v.y + v.z + v.w; }  // a quarter
  if (t < 16) { v = s[t + 8]; sum.y = v.x + v.y + v.z + v.w; }  // half
  if (t % 2) { v = s[t / 2]; sum.z = v.x + v.y + v.z + v.w; }  // every other
  if (t != 5) { v = s[3]; sum.w = v.x + v.y + v.z + v.w; }  // all but one
  // clang-format on
  b[t] = sum.x + sum.y + sum.z + sum.w;
}

// --- mbarrier

template <int MAKERS, bool SYNC, bool WAIT>  // of so many threads each, one initialises the barrier
__device__ void passes_on(float* a, float* b) {
  __shared__ float s[64];
  __shared__ cuda::barrier<cuda::thread_scope_block> full;
  if (threadIdx.x % MAKERS == 0) init(&full, 64);
  if (SYNC) __syncthreads();
  int t = threadIdx.x;
  for (int i = 0; i < 4; ++i) {
    s[t] = a[i * 64 + t];
    if (WAIT) full.arrive_and_wait();
    b[i * 64 + t] = s[63 - t];
    full.arrive_and_wait();
  }
}
KERNEL barrier_right(float* a, float* b) { passes_on<64, true, true>(a, b); }
KERNEL barrier_not_waited_at(float* a, float* b) { passes_on<64, true, false>(a, b); }
KERNEL barrier_not_seen(float* a, float* b) { passes_on<64, false, true>(a, b); }
KERNEL barrier_made_twice(float* a, float* b) { passes_on<32, true, true>(a, b); }
KERNEL barrier_made_twice_not_seen(float* a, float* b) { passes_on<32, false, true>(a, b); }

template <bool WAITS>
__device__ void bulk(const float* a, float* b) {
  __shared__ alignas(16) float s[256];
  __shared__ alignas(8) unsigned long long bar;
  unsigned at = __cvta_generic_to_shared(&bar), to = __cvta_generic_to_shared(s);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(at) : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1], 1024, [%2];" ::"r"(to),
        "l"(a), "r"(at)
        : "memory");
  }
  if (WAITS)
    asm volatile(
        "{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; "
        "@!p bra W; }" ::"r"(at)
        : "memory");
  b[threadIdx.x] = s[255 - threadIdx.x];
}
KERNEL bulk_waits(const float* a, float* b) { bulk<true>(a, b); }
KERNEL bulk_does_not_wait(const float* a, float* b) { bulk<false>(a, b); }
