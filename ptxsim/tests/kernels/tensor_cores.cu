// Small kernels on tensor cores: right ones, and ones that are wrong at the lines marked BAD.
// tests/ptxsim/test_tensor_cores.py runs them.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>

#define KERNEL extern "C" __global__ void
using namespace nvcuda;
using u32 = uint32_t;
using u64 = uint64_t;
using Map = CUtensorMap;

// --- instructions, inline so that a finding names the line that uses them

#define AT(p) u32(__cvta_generic_to_shared(p))
#define FENCE_PROXY asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define FENCE asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define COMMIT asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WAIT(n) asm volatile("wgmma.wait_group.sync.aligned " #n ";" ::: "memory")
#define INIT(b, n) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(AT(b)), "r"(n))
#define SHOW_INIT asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory")
#define EXPECT(b, n)                                                           \
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"( \
                   AT(b)),                                                     \
               "r"(n)                                                          \
               : "memory")
#define ARRIVE(b) \
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(AT(b)) : "memory")
#define WAIT_FOR(b, parity)                                                                  \
  asm volatile(                                                                              \
      "{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra W; " \
      "}" ::"r"(AT(b)),                                                                      \
      "r"(parity)                                                                            \
      : "memory")
#define TRY_WAIT_FOR(there, b, parity)                                                     \
  asm volatile(                                                                            \
      "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.s32 %0," \
      "1, 0, p; }"                                                                         \
      : "=r"(there)                                                                        \
      : "r"(AT(b)), "r"(parity)                                                            \
      : "memory")
#define LOAD_TILE(to, map, x, y, b)                                                           \
  asm volatile(                                                                               \
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "     \
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(AT(to)),                                            \
      "l"(map), "r"(x), "r"(y), "r"(AT(b))                                                    \
      : "memory")
#define STORE_TILE(map, x, y, from)                                                         \
  asm volatile(                                                                             \
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" :: \
          "l"(map),                                                                         \
      "r"(x), "r"(y), "r"(AT(from))                                                         \
      : "memory")
#define BULK_COMMIT asm volatile("cp.async.bulk.commit_group;" ::: "memory")
#define BULK_WAIT asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory")
#define BULK_WAIT_WRITTEN(n) asm volatile("cp.async.bulk.wait_group " #n ";" ::: "memory")
#define CLUSTER_SYNC                                           \
  asm volatile("barrier.cluster.arrive.release.aligned;\n"     \
               "barrier.cluster.wait.acquire.aligned;" ::: "memory")
// The same place in the shared memory of another block.
__device__ u32 of_block(const void* p, u32 rank) {
  u32 there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(AT(p)), "r"(rank));
  return there;
}
__device__ u32 rank_in_cluster() {
  u32 rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
#define LOAD_FROM(to, p, rank) \
  asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(to) : "r"(of_block(p, rank)) : "memory")
#define STORE_TO(p, rank, value) \
  asm volatile("st.shared::cluster.s32 [%0], %1;" ::"r"(of_block(p, rank)), "r"(value) : "memory")
#define ARRIVE_AT(b, rank)                                                                     \
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(           \
                   of_block(b, rank))                                                          \
               : "memory")
#define ARRIVE_RELAXED(b) \
  asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" ::"r"(AT(b)) : "memory")
#define ARRIVE_RELAXED_AT(b, rank)                                                            \
  asm volatile(                                                                               \
      "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];" ::"r"(of_block(b, rank)) \
      : "memory")
#define WAIT_RELAXED_FOR(b, parity)                                                       \
  asm volatile(                                                                           \
      "{ .reg .pred p; W: mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 p, [%0], " \
      "%1; @!p bra W; }" ::"r"(AT(b)),                                                    \
      "r"(parity)                                                                         \
      : "memory")
#define CLUSTER_SYNC_RELAXED                      \
  asm volatile(                                   \
      "barrier.cluster.arrive.relaxed.aligned;\n" \
      "barrier.cluster.wait.acquire.aligned;" ::  \
          : "memory")
#define FENCE_CLUSTER asm volatile("fence.acq_rel.cluster;" ::: "memory")
// Two values of 32 bits, and the mbarrier beside them.
#define STORE_ASYNC(p, rank, x, y, b) STORE_ASYNC_AT(p, rank, x, y, of_block(b, rank))
#define STORE_ASYNC_AT(p, rank, x, y, barrier)                                                     \
  asm volatile(                                                                                    \
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.s32 [%0], {%1, %2}, [%3];" :: \
          "r"(of_block(p, rank)),                                                                  \
      "r"(x), "r"(y), "r"(barrier)                                                                 \
      : "memory")
#define MULTICAST(to, map, x, y, b)                                                       \
  asm volatile(                                                                           \
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"  \
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(AT(to)),                \
      "l"(map), "r"(x), "r"(y), "r"(AT(b)), "h"(uint16_t(3))                              \
      : "memory")
#define WGMMA8(d, a, b, adds)                                                                 \
  asm volatile(                                                                               \
      "{ .reg .pred p; setp.ne.b32 p, %6, 0;\n"                                               \
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, " \
      "0, 0; }"                                                                               \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                        \
      : "l"(a), "l"(b), "r"(adds))
#define MMA(d, a, b)                                                                            \
  asm volatile(                                                                                 \
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "  \
      "{%8, %9}, {%0, %1, %2, %3};"                                                             \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                          \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#define LDMATRIX4(r, p)                                                                   \
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"         \
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])                           \
               : "r"(AT(p)))
#define LDMATRIX2_TRANS(r, p)                                                \
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" \
               : "=r"(r[0]), "=r"(r[1])                                      \
               : "r"(AT(p)))

// A matrix in rows of 16 halves without a swizzle: cores of 8 rows by 16 bytes.
__device__ u64 plain(const void* p, int leading, int stride) {
  return u64(AT(p) >> 4) | u64(leading >> 4) << 16 | u64(stride >> 4) << 32;
}
// One in rows of 128 bytes, swizzled.
__device__ u64 swizzled(const void* p) {
  return u64((AT(p) & 0x3ffff) >> 4) | u64(1) << 16 | u64(64) << 32 | u64(1) << 62;
}

// --- products of whole matrices, to be compared with numpy's

// C (f32, rows) = A (rows) · B (rows), by wmma from shared tiles
KERNEL gemm_wmma(const half* A, const half* B, float* C, int n, int k) {
  __shared__ alignas(32) half a[16 * 24], b[16 * 24];
  __shared__ alignas(32) float c[16 * 16];
  const int l = threadIdx.x, row0 = blockIdx.y * 16, col0 = blockIdx.x * 16;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int p = 0; p < k; p += 16) {
    for (int e = l; e < 256; e += 32) {
      a[e / 16 * 24 + e % 16] = A[(row0 + e / 16) * k + p + e % 16];
      b[e / 16 * 24 + e % 16] = B[(p + e / 16) * n + col0 + e % 16];
    }
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::load_matrix_sync(fa, a, 24);
    wmma::load_matrix_sync(fb, b, 24);
    wmma::mma_sync(sum, fa, fb, sum);
    __syncwarp();
  }
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_col_major);
  __syncwarp();
  for (int e = l; e < 256; e += 32) C[(row0 + e / 16) * n + col0 + e % 16] = c[e % 16 * 16 + e / 16];
}

// The same by mma.sync and ldmatrix, 16×8 for each warp
KERNEL gemm_mma(const half* A, const half* B, float* C, int n, int k) {
  __shared__ alignas(16) half a[16 * 24], b[16 * 8];
  const int l = threadIdx.x, row0 = blockIdx.y * 16, col0 = blockIdx.x * 8;
  float d[4] = {};
  for (int p = 0; p < k; p += 16) {
    for (int e = l; e < 256; e += 32) a[e / 16 * 24 + e % 16] = A[(row0 + e / 16) * k + p + e % 16];
    for (int e = l; e < 128; e += 32) b[e] = B[(p + e / 8) * n + col0 + e % 8];
    __syncwarp();
    u32 ra[4], rb[2];
    LDMATRIX4(ra, a + l % 16 * 24 + l / 16 * 8);
    LDMATRIX2_TRANS(rb, b + l % 16 * 8);
    MMA(d, ra, rb);
    __syncwarp();
  }
  for (int i = 0; i < 4; ++i) C[(row0 + l / 4 + i / 2 * 8) * n + col0 + l % 4 * 2 + i % 2] = d[i];
}

// C (f32, rows) = A (rows) · B (columns), by TMA and wgmma, 64×8 for each block
KERNEL gemm_wgmma(const __grid_constant__ Map A, const __grid_constant__ Map B, float* C, int n,
                  int k) {
  __shared__ alignas(1024) half a[2][64 * 64], b[2][8 * 64];
  __shared__ alignas(8) u64 full[2];
  const int t = threadIdx.x, row0 = blockIdx.y * 64, col0 = blockIdx.x * 8;
  if (t == 0) {
    INIT(&full[0], 1);
    INIT(&full[1], 1);
    FENCE_PROXY;
  }
  __syncthreads();
  float d[4] = {};
  const int tiles = k / 64;
  for (int i = -1; i < tiles; ++i) {
    if (t == 0 && i + 1 < tiles) {
      const int next = (i + 1) & 1;
      EXPECT(&full[next], 64 * 64 * 2 + 8 * 64 * 2);
      LOAD_TILE(a[next], &A, (i + 1) * 64, row0, &full[next]);
      LOAD_TILE(b[next], &B, (i + 1) * 64, col0, &full[next]);
    }
    if (i < 0) continue;
    WAIT_FOR(&full[i & 1], i / 2 & 1);
    FENCE;
    for (int s = 0; s < 4; ++s)
      WGMMA8(d, swizzled(a[i & 1] + s * 16), swizzled(b[i & 1] + s * 16), 1);
    COMMIT;
    WAIT(0);
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    C[(row0 + t / 32 * 16 + t % 32 / 4 + i / 2 * 8) * n + col0 + t % 4 * 2 + i % 2] = d[i];
}

// --- one 64×8×16 product from shared memory, with one step left out or wrong in each kernel

#define TILES                                                                               \
  __shared__ alignas(128) half a[64 * 16], b[8 * 16];                                       \
  const int t = threadIdx.x;                                                                \
  const u64 da = plain(a, 128, 256), db = plain(b, 128, 256)
#define FILL(array, from, rows)                                    \
  for (int e = t; e < rows * 16; e += 128)                         \
  array[e / 128 * 128 + (e % 128) / 16 * 8 + (e % 8) + (e / 8 % 2) * 64] = (from)[e]
// Row r, column k of the cores of `array`.
__device__ int core(int r, int k) { return r / 8 * 128 + k / 8 * 64 + r % 8 * 8 + k % 8; }
#define FILL_TILES                                                     \
  for (int e = t; e < 64 * 16; e += 128) a[core(e / 16, e % 16)] = A[e]; \
  if (t < 128) b[core(t / 16, t % 16)] = B[t]
#define PUT_RESULT                                                                          \
  for (int i = 0; i < 4; ++i)                                                               \
  C[(t / 32 * 16 + t % 32 / 4 + i / 2 * 8) * 8 + t % 4 * 2 + i % 2] = d[i]

KERNEL wgmma_right(const half* A, const half* B, float* C) {
  TILES;
  FILL_TILES;
  FENCE_PROXY;
  __syncthreads();
  float d[4] = {};
  FENCE;
  WGMMA8(d, da, db, 1);
  COMMIT;
  WAIT(0);
  PUT_RESULT;
}
KERNEL wgmma_without_fence(const half* A, const half* B, float* C) {
  TILES;
  FILL_TILES;
  FENCE_PROXY;
  __syncthreads();
  float d[4] = {};
  WGMMA8(d, da, db, 1);  // BAD
  COMMIT;
  WAIT(0);
  PUT_RESULT;
}
KERNEL wgmma_without_proxy_fence(const half* A, const half* B, float* C) {
  TILES;
  FILL_TILES;
  __syncthreads();
  float d[4] = {};
  FENCE;
  WGMMA8(d, da, db, 1);  // BAD
  COMMIT;
  WAIT(0);
  PUT_RESULT;
}
KERNEL wgmma_fence_by_one_thread(const half* A, const half* B, float* C) {
  TILES;
  FILL_TILES;
  if (t == 0) FENCE_PROXY;
  __syncthreads();
  float d[4] = {};
  FENCE;
  WGMMA8(d, da, db, 1);  // BAD
  COMMIT;
  WAIT(0);
  PUT_RESULT;
}
KERNEL wgmma_not_waited_for(const half* A, const half* B, float* C) {
  TILES;
  FILL_TILES;
  FENCE_PROXY;
  __syncthreads();
  float d[4] = {};
  FENCE;
  WGMMA8(d, da, db, 1);
  COMMIT;
  PUT_RESULT;  // BAD
  WAIT(0);
}
KERNEL wgmma_waits_for_too_few(const half* A, const half* B, float* C) {
  TILES;
  FILL_TILES;
  FENCE_PROXY;
  __syncthreads();
  float d[4] = {};
  FENCE;
  WGMMA8(d, da, db, 1);
  COMMIT;
  WAIT(1);
  PUT_RESULT;  // BAD
}
KERNEL wgmma_not_committed(const half* A, const half* B, float* C) {
  TILES;
  FILL_TILES;
  FENCE_PROXY;
  __syncthreads();
  float d[4] = {};
  FENCE;
  WGMMA8(d, da, db, 1);
  WAIT(0);
  PUT_RESULT;  // BAD
}
KERNEL wgmma_without_barrier(const half* A, const half* B, float* C) {
  TILES;
  if (t < 32) b[core(t / 4, t % 4 * 4)] = B[0];
  __syncthreads();
  FILL_TILES;
  FENCE_PROXY;
  float d[4] = {};
  FENCE;
  WGMMA8(d, da, db, 1);  // BAD
  COMMIT;
  WAIT(0);
  PUT_RESULT;
}
KERNEL tile_overwritten(const half* A, const half* B, float* C) {
  TILES;
  FILL_TILES;
  FENCE_PROXY;
  __syncthreads();
  float d[4] = {};
  FENCE;
  WGMMA8(d, da, db, 1);
  COMMIT;
  b[core(t / 16, t % 16)] = B[t];  // BAD
  WAIT(0);
  PUT_RESULT;
}
// The four warps multiply together: whoever has waited may overwrite what all of them read.
KERNEL tile_overwritten_after_the_wait(const half* A, const half* B, float* C) {
  TILES;
  FILL_TILES;
  FENCE_PROXY;
  __syncthreads();
  float d[4] = {};
  FENCE;
  WGMMA8(d, da, db, 1);
  COMMIT;
  WAIT(0);
  b[core(t / 16, t % 16)] = B[0];
  PUT_RESULT;
}
KERNEL tile_overwritten_before_its_group_ends(const half* A, const half* B, float* C) {
  TILES;
  FILL_TILES;
  FENCE_PROXY;
  __syncthreads();
  float d[4] = {};
  FENCE;
  for (int i = 0; i < 2; ++i) {
    WGMMA8(d, da, db, i);
    COMMIT;
  }
  WAIT(1);
  b[core(t / 16, t % 16)] = B[0];  // BAD
  WAIT(0);
  PUT_RESULT;
}
KERNEL registers_set_after_fence(const half* A, const half* B, float* C) {
  TILES;
  FILL_TILES;
  FENCE_PROXY;
  __syncthreads();
  FENCE;
  const float first = __half2float(A[t]);
  float d[4] = {first, first + 1, first + 2, first + 3};
  WGMMA8(d, da, db, 1);  // BAD
  COMMIT;
  WAIT(0);
  PUT_RESULT;
}
KERNEL wgmma_by_three_warps(const half* A, const half* B, float* C) {
  TILES;
  FILL_TILES;
  FENCE_PROXY;
  __syncthreads();
  float d[4] = {};
  if (t < 96) {
    FENCE;  // BAD
    WGMMA8(d, da, db, 1);
    COMMIT;
    WAIT(0);
  }
  PUT_RESULT;
}
KERNEL descriptor_past_the_end(const half* A, const half* B, float* C) {
  TILES;
  FILL_TILES;
  FENCE_PROXY;
  __syncthreads();
  float d[4] = {};
  FENCE;
  WGMMA8(d, plain(a, 128, 512), db, 1);  // BAD
  COMMIT;
  WAIT(0);
  PUT_RESULT;
}
KERNEL tile_never_written(const half* A, const half* B, float* C) {
  TILES;
  for (int e = t; e < 64 * 16; e += 128) a[core(e / 16, e % 16)] = A[e];
  FENCE_PROXY;
  __syncthreads();
  float d[4] = {};
  FENCE;
  WGMMA8(d, da, db, 1);  // BAD
  COMMIT;
  WAIT(0);
  PUT_RESULT;
}
// Rows that nobody wrote, and whose results nobody stores, do no harm.
KERNEL padding_never_written(const half* A, const half* B, float* C) {
  TILES;
  for (int e = t; e < 48 * 16; e += 128) a[core(e / 16, e % 16)] = A[e];
  b[core(t / 16, t % 16)] = B[t];
  FENCE_PROXY;
  __syncthreads();
  float d[4] = {};
  FENCE;
  WGMMA8(d, da, db, 1);
  COMMIT;
  WAIT(0);
  if (t < 96) PUT_RESULT;
}
// A from registers: fragments as mma.sync has them.
KERNEL wgmma_a_in_registers(const half* A, const half* B, float* C) {
  TILES;
  FILL_TILES;
  FENCE_PROXY;
  __syncthreads();
  u32 r[4];
  for (int i = 0; i < 4; ++i) {
    const int row = t / 32 * 16 + t % 32 / 4 + i % 2 * 8, k = t % 4 * 2 + i / 2 * 8;
    r[i] = *reinterpret_cast<const u32*>(A + row * 16 + k);
  }
  float d[4] = {};
  asm volatile("" : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3])::"memory");
  FENCE;
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, "
      "1, 1, 1, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "l"(db));
  COMMIT;
  WAIT(0);
  PUT_RESULT;
}

// --- mma.sync, wmma and ldmatrix

KERNEL half_a_warp_multiplies(const half* A, const half* B, float* C) {
  u32 a[4] = {1, 2, 3, 4}, b[2] = {5, 6};
  float d[4] = {};
  if (threadIdx.x < 16) MMA(d, a, b);  // BAD
  C[threadIdx.x] = d[0];
}
KERNEL half_a_warp_loads(const half* A, const half* B, float* C) {
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(c, 1.0f);
  if (threadIdx.x >= 8) wmma::store_matrix_sync(C, c, 16, wmma::mem_row_major);  // BAD
}
KERNEL ldmatrix_misaligned(const half* A, const half* B, float* C) {
  __shared__ alignas(16) half a[16 * 20];
  const int l = threadIdx.x;
  for (int e = l; e < 320; e += 32) a[e] = A[e % 256];
  __syncwarp();
  u32 r[4];
  LDMATRIX4(r, a + l % 16 * 20 + l / 16 * 8);  // BAD
  C[l] = __uint_as_float(r[0] ^ r[1] ^ r[2] ^ r[3]);
}
KERNEL ldmatrix_out_of_bounds(const half* A, const half* B, float* C) {
  __shared__ alignas(16) half a[15 * 16];
  const int l = threadIdx.x;
  for (int e = l; e < 240; e += 32) a[e] = A[e];
  __syncwarp();
  u32 r[4];
  LDMATRIX4(r, a + l % 16 * 16 + l / 16 * 8);  // BAD
  C[l] = __uint_as_float(r[0] ^ r[1] ^ r[2] ^ r[3]);
}
KERNEL ldmatrix_without_sync(const half* A, const half* B, float* C) {
  __shared__ alignas(16) half a[16 * 16];
  const int l = threadIdx.x;
  for (int e = l; e < 256; e += 64) a[e] = A[e];
  u32 r[4];
  LDMATRIX4(r, a + l % 16 * 16 + l / 16 * 8);  // BAD
  C[l] = __uint_as_float(r[0] ^ r[1] ^ r[2] ^ r[3]);
}
// The last step of a pipeline fetches a fragment for none; where it lies, the results are staged.
#define SUMS_OF_TWO_STAGES                                       \
  __shared__ alignas(16) half a[2][16 * 16];                     \
  const int t = threadIdx.x;                                     \
  const int at = t % 16 * 16 + t % 32 / 16 * 8;                  \
  for (int e = t; e < 512; e += 128) a[e / 256][e % 256] = A[e]; \
  __syncthreads();                                               \
  u32 r[4], ones[2] = {0x3c003c00, 0x3c003c00};                  \
  float d[4] = {};                                               \
  LDMATRIX4(r, a[0] + at);                                       \
  _Pragma("unroll 1") for (int step = 0; step < 2; ++step) {     \
    MMA(d, r, ones);                                             \
    __syncthreads();                                             \
    LDMATRIX4(r, a[(step + 1) % 2] + at);                        \
  }                                                              \
  float* const staged = reinterpret_cast<float*>(a[0])

KERNEL last_fragment_unused(const half* A, const half* B, float* C) {
  SUMS_OF_TWO_STAGES;
  staged[t] = d[0];  // BAD
  __syncthreads();
  C[t] = staged[127 - t];
}
KERNEL last_fragment_multiplied(const half* A, const half* B, float* C) {
  SUMS_OF_TWO_STAGES;
  staged[t] = d[0];  // BAD
  __syncthreads();
  MMA(d, r, ones);
  C[t] = staged[127 - t] + d[0];
}
KERNEL wmma_pitch_of_ten(const half* A, const half* B, float* C) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
  wmma::load_matrix_sync(a, A, 10);  // BAD
  C[threadIdx.x] = __half2float(a.x[0]);
}
KERNEL wmma_past_the_end(const half* A, const half* B, float* C) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
  wmma::load_matrix_sync(a, A + 1024 - 128, 16);  // BAD
  C[threadIdx.x] = __half2float(a.x[0]);
}
KERNEL wmma_never_filled(const half* A, const half* B, float* C) {
  __shared__ alignas(32) half a[256];
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(c, 0.0f);
  wmma::load_matrix_sync(fa, a, 16);  // BAD
  wmma::load_matrix_sync(fb, B, 8);
  wmma::mma_sync(c, fa, fb, c);
  wmma::store_matrix_sync(C, c, 16, wmma::mem_row_major);
}
// Elements one by one: whatever lane holds them.
KERNEL wmma_scales_elements(const half* A, const half* B, float* C) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::col_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, half> c;
  wmma::load_matrix_sync(a, A, 16);
  wmma::load_matrix_sync(b, A + 256, 16);
  for (int i = 0; i < a.num_elements; ++i) a.x[i] = a.x[i] + a.x[i];
  wmma::fill_fragment(c, __float2half(0.0f));
  wmma::mma_sync(c, a, b, c);
  wmma::store_matrix_sync(reinterpret_cast<half*>(C), c, 16, wmma::mem_row_major);
}
KERNEL stmatrix_transposes(const half* A, const half* B, float* C) {
  __shared__ alignas(16) half s[256];
  const int l = threadIdx.x;
  for (int e = l; e < 256; e += 32) s[e] = A[e];
  __syncwarp();
  u32 r[4];
  LDMATRIX4(r, s + l * 8);
  __syncwarp();
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   AT(s + l * 8)),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
  __syncwarp();
  for (int e = l; e < 256; e += 32) reinterpret_cast<half*>(C)[e] = s[e];
}
KERNEL mma_m8n8k4(const half* A, const half* B, float* C) {
  const int l = threadIdx.x, quad = l % 16 / 4, row = l % 4 + l / 16 * 4;
  const u32* a = reinterpret_cast<const u32*>(A + quad * 32 + row * 4);
  const u32* b = reinterpret_cast<const u32*>(A + 256 + quad * 32 + row * 4);
  float d[8];
  asm volatile(
      "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, "
      "%9}, {%10, %11}, {%12, %12, %12, %12, %12, %12, %12, %12};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]), "f"(0.0f));
  for (int i = 0; i < 8; ++i)
    C[quad * 64 + ((l & 1) + (i & 2) + l / 16 * 4) * 8 + (i & 4) + (l & 2) + (i & 1)] = d[i];
}

// --- mbarriers and bulk copies

#define TILE_AND_BARRIER_SHOWN_BY(FENCE)      \
  __shared__ alignas(128) half s[32 * 32];    \
  __shared__ alignas(8) u64 full;             \
  const int t = threadIdx.x;                  \
  if (t == 0) {                               \
    INIT(&full, 1);                           \
    FENCE;                                    \
  }                                           \
  __syncthreads()
#define TILE_AND_BARRIER TILE_AND_BARRIER_SHOWN_BY(SHOW_INIT)
constexpr int TILE = 32 * 32 * 2;

KERNEL copies_a_tile(const __grid_constant__ Map A, half* C) {
  TILE_AND_BARRIER;
  if (t == 0) {
    EXPECT(&full, TILE);
    LOAD_TILE(s, &A, 32, 32, &full);
  }
  WAIT_FOR(&full, 0);
  for (int e = t; e < 1024; e += 128) C[e] = s[e];
}
// Coordinates beyond the tensor on two sides: what is there reads as zero.
KERNEL copies_an_edge(const __grid_constant__ Map A, half* C) {
  TILE_AND_BARRIER;
  if (t == 0) {
    EXPECT(&full, TILE);
    LOAD_TILE(s, &A, 48, -16, &full);
  }
  WAIT_FOR(&full, 0);
  for (int e = t; e < 1024; e += 128) C[e] = s[e];
}
#define LOAD_AND_PUT(ISSUER)               \
  if (t == ISSUER) {                       \
    EXPECT(&full, TILE);                   \
    LOAD_TILE(s, &A, 32, 32, &full);       \
  }                                        \
  WAIT_FOR(&full, 0);                      \
  for (int e = t; e < 1024; e += 128) C[e] = s[e]
KERNEL mbarrier_never_shown(const __grid_constant__ Map A, half* C) {
  TILE_AND_BARRIER_SHOWN_BY();  // BAD
  LOAD_AND_PUT(0);
}
KERNEL mbarrier_shown_by_another_thread(const __grid_constant__ Map A, half* C) {
  TILE_AND_BARRIER_SHOWN_BY();  // BAD
  if (t == 1) SHOW_INIT;
  __syncthreads();
  LOAD_AND_PUT(0);
}
KERNEL mbarrier_shown_too_late(const __grid_constant__ Map A, half* C) {
  TILE_AND_BARRIER_SHOWN_BY();  // BAD
  if (t == 0) SHOW_INIT;
  LOAD_AND_PUT(64);
}
KERNEL mbarrier_shown_by_a_proxy_fence(const __grid_constant__ Map A, half* C) {
  TILE_AND_BARRIER_SHOWN_BY(FENCE_PROXY);
  LOAD_AND_PUT(64);
}
KERNEL mbarrier_shown_by_who_copies(const __grid_constant__ Map A, half* C) {
  TILE_AND_BARRIER_SHOWN_BY();
  if (t == 64) FENCE_PROXY;
  LOAD_AND_PUT(64);
}
#define COPY_OVER_A_STORE(ORDER) \
  TILE_AND_BARRIER;              \
  s[t] = __float2half(t);            \
  ORDER;                         \
  __syncthreads();               \
  LOAD_AND_PUT(0)
KERNEL copies_over_a_store(const __grid_constant__ Map A, half* C) {
  COPY_OVER_A_STORE();  // BAD
}
KERNEL copies_over_a_fenced_store(const __grid_constant__ Map A, half* C) {
  COPY_OVER_A_STORE(FENCE_PROXY);
}
KERNEL copies_over_a_store_that_was_read(const __grid_constant__ Map A, half* C) {
  COPY_OVER_A_STORE(__syncthreads(); C[1024 + t] = s[t ^ 64]);  // BAD
}
// One lane waits for those who stored and fenced.
KERNEL one_lane_waits_and_copies(const __grid_constant__ Map A, half* C) {
  TILE_AND_BARRIER;
  __shared__ alignas(8) u64 empty;
  if (t == 0) INIT(&empty, 64);
  __syncthreads();
  if (t >= 64) {
    s[t] = __float2half(t);
    FENCE_PROXY;
    ARRIVE(&empty);
  }
  if (t == 0) WAIT_FOR(&empty, 0);
  LOAD_AND_PUT(0);
}
KERNEL tile_not_waited_for(const __grid_constant__ Map A, half* C) {
  TILE_AND_BARRIER;
  if (t == 0) {
    EXPECT(&full, TILE);
    LOAD_TILE(s, &A, 0, 0, &full);
  }
  __syncthreads();
  for (int e = t; e < 1024; e += 128) C[e] = s[e];  // BAD
}
KERNEL issuer_does_not_wait(const __grid_constant__ Map A, half* C) {
  TILE_AND_BARRIER;
  if (t == 0) {
    EXPECT(&full, TILE);
    LOAD_TILE(s, &A, 0, 0, &full);
    for (int e = 0; e < 1024; ++e) C[e] = s[e];  // BAD
  }
}
KERNEL expects_too_few(const __grid_constant__ Map A, half* C) {
  TILE_AND_BARRIER;
  if (t == 0) {
    EXPECT(&full, TILE / 2);
    LOAD_TILE(s, &A, 0, 0, &full);
  }
  WAIT_FOR(&full, 0);  // BAD
  for (int e = t; e < 1024; e += 128) C[e] = s[e];
}
KERNEL expects_too_many(const __grid_constant__ Map A, half* C) {
  TILE_AND_BARRIER;
  if (t == 0) {
    EXPECT(&full, TILE * 2);
    LOAD_TILE(s, &A, 0, 0, &full);
  }
  WAIT_FOR(&full, 0);  // BAD
  for (int e = t; e < 1024; e += 128) C[e] = s[e];
}
// Who waits looks at the clock meanwhile, as libcu++ does.
KERNEL expects_too_many_by_the_clock(const __grid_constant__ Map A, half* C) {
  TILE_AND_BARRIER;
  if (t == 0) {
    EXPECT(&full, TILE + 16);
    LOAD_TILE(s, &A, 0, 0, &full);
  }
  int there = 0;
  for (const long long start = clock64(); !there && clock64() > start;)
    TRY_WAIT_FOR(there, &full, 0);  // BAD
  for (int e = t; e < 1024; e += 128) C[e] = s[e];
}
// The first warp waits for the others, which wait for the copy.
KERNEL expects_too_many_ahead(const __grid_constant__ Map A, half* C) {
  TILE_AND_BARRIER;
  __shared__ alignas(8) u64 done;
  if (t == 0) INIT(&done, 96);
  __syncthreads();
  if (t == 0) {
    EXPECT(&full, TILE + 16);
    LOAD_TILE(s, &A, 0, 0, &full);
  }
  if (t < 32) {
    WAIT_FOR(&done, 0);
  } else {
    WAIT_FOR(&full, 0);  // BAD
    ARRIVE(&done);
  }
  C[t] = s[t];
}
KERNEL nobody_arrives(const __grid_constant__ Map A, half* C) {
  TILE_AND_BARRIER;
  WAIT_FOR(&full, 0);  // BAD
  C[t] = s[t];
}
KERNEL too_many_arrivals_wanted(const __grid_constant__ Map A, half* C) {
  __shared__ alignas(8) u64 done;
  const int t = threadIdx.x;
  if (t == 0) INIT(&done, 128);
  __syncthreads();
  if (t < 64) ARRIVE(&done);
  WAIT_FOR(&done, 0);  // BAD
  C[t] = __float2half(1.0f);
}
KERNEL waits_for_the_wrong_parity(const __grid_constant__ Map A, half* C) {
  TILE_AND_BARRIER;
  if (t == 0) {
    EXPECT(&full, TILE);
    LOAD_TILE(s, &A, 0, 0, &full);
  }
  WAIT_FOR(&full, 1);  // BAD
  for (int e = t; e < 1024; e += 128) C[e] = s[e];
}
KERNEL tile_out_of_bounds(const __grid_constant__ Map A, half* C) {
  __shared__ alignas(128) half s[16 * 32];
  __shared__ alignas(8) u64 full;
  if (threadIdx.x == 0) {
    INIT(&full, 1);
    EXPECT(&full, TILE);
    LOAD_TILE(s, &A, 0, 0, &full);  // BAD
  }
}
KERNEL tile_misaligned(const __grid_constant__ Map A, half* C) {
  __shared__ alignas(128) half s[32 * 32 + 32];
  __shared__ alignas(8) u64 full;
  if (threadIdx.x == 0) {
    INIT(&full, 1);
    EXPECT(&full, TILE);
    LOAD_TILE(s + 32, &A, 0, 0, &full);  // BAD
  }
}
KERNEL tile_at_an_odd_column(const __grid_constant__ Map A, half* C) {
  TILE_AND_BARRIER;
  if (t == 0) {
    EXPECT(&full, TILE);
    LOAD_TILE(s, &A, 27, 0, &full);  // BAD
  }
  WAIT_FOR(&full, 0);
  for (int e = t; e < 1024; e += 128) C[e] = s[e];
}
KERNEL barrier_never_initialised(const __grid_constant__ Map A, half* C) {
  __shared__ alignas(128) half s[32 * 32];
  __shared__ alignas(8) u64 full;
  if (threadIdx.x == 0) LOAD_TILE(s, &A, 0, 0, &full);  // BAD
}
KERNEL stores_a_tile(const __grid_constant__ Map C, const half* A) {
  __shared__ alignas(128) half s[32 * 32];
  const int t = threadIdx.x;
  for (int e = t; e < 1024; e += 128) s[e] = A[e];
  FENCE_PROXY;
  __syncthreads();
  if (t == 0) {
    STORE_TILE(&C, 32, 0, s);
    BULK_COMMIT;
    BULK_WAIT;
  }
  __syncthreads();
  s[t] = A[0];
}
#define COPY_OF_WHAT_WAS_STORED(FENCE)                                                        \
  __shared__ alignas(128) half s[32];                                                         \
  __shared__ alignas(8) u64 full;                                                             \
  const int t = threadIdx.x;                                                                  \
  if (t == 0) INIT(&full, 1);                                                                 \
  C[t] = A[t];                                                                                \
  FENCE;                                                                                      \
  __syncthreads();                                                                            \
  if (t == 0) {                                                                               \
    EXPECT(&full, 64);                                                                        \
    asm volatile(                                                                             \
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 64, [%2];" :: \
            "r"(AT(s)),                                                                       \
        "l"(C), "r"(AT(&full))                                                                \
        : "memory");                                                                          \
  }                                                                                           \
  WAIT_FOR(&full, 0);                                                                         \
  C[32 + t] = s[t]
KERNEL copies_what_was_stored(const half* A, half* C) { COPY_OF_WHAT_WAS_STORED(FENCE_PROXY); }
KERNEL copies_what_was_stored_unfenced(const half* A, half* C) {
  COPY_OF_WHAT_WAS_STORED();  // BAD
}
KERNEL ends_while_its_tile_is_stored(const __grid_constant__ Map C, const half* A) {
  __shared__ alignas(128) half s[32 * 32];
  const int t = threadIdx.x;
  for (int e = t; e < 1024; e += 128) s[e] = A[e];
  FENCE_PROXY;
  __syncthreads();
  if (t == 0) {
    STORE_TILE(&C, 32, 0, s);  // BAD
    BULK_COMMIT;
  }
}
KERNEL store_without_proxy_fence(const __grid_constant__ Map C, const half* A) {
  __shared__ alignas(128) half s[32 * 32];
  const int t = threadIdx.x;
  for (int e = t; e < 1024; e += 128) s[e] = A[e];
  __syncthreads();
  if (t == 0) {
    STORE_TILE(&C, 32, 0, s);  // BAD
    BULK_COMMIT;
    BULK_WAIT;
  }
}
KERNEL tile_stored_before_the_first_column(const __grid_constant__ Map C, const half* A) {
  __shared__ alignas(128) half s[32 * 32];
  const int t = threadIdx.x;
  for (int e = t; e < 1024; e += 128) s[e] = A[e];
  FENCE_PROXY;
  __syncthreads();
  if (t == 0) {
    STORE_TILE(&C, -4, 0, s);  // BAD
    BULK_COMMIT;
    BULK_WAIT;
  }
}
KERNEL tile_stored_before_the_first_row(const __grid_constant__ Map C, const half* A) {
  __shared__ alignas(128) half s[32 * 32];
  const int t = threadIdx.x;
  for (int e = t; e < 1024; e += 128) s[e] = A[e];
  FENCE_PROXY;
  __syncthreads();
  if (t == 0) {
    STORE_TILE(&C, 0, -1, s);  // BAD
    BULK_COMMIT;
    BULK_WAIT;
  }
}
KERNEL stored_tile_overwritten(const __grid_constant__ Map C, const half* A) {
  __shared__ alignas(128) half s[32 * 32];
  const int t = threadIdx.x;
  for (int e = t; e < 1024; e += 128) s[e] = A[e];
  FENCE_PROXY;
  __syncthreads();
  if (t == 0) {
    STORE_TILE(&C, 32, 0, s);
    BULK_COMMIT;
  }
  __syncthreads();
  s[t] = A[0];  // BAD
}

// --- what copies may still write or read in global memory

#define BULK(operation, to, from)                                                               \
  asm volatile(operation " [%0], [%1], 64;" ::"l"(to), "r"(AT(from)) : "memory")
#define STORE "cp.async.bulk.global.shared::cta.bulk_group"
#define ADD "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16"
#define STORED(operation, WAITS)     \
  __shared__ alignas(128) half s[32]; \
  const int t = threadIdx.x;          \
  s[t] = A[t];                        \
  FENCE_PROXY;                        \
  __syncthreads();                    \
  if (t == 0) {                       \
    BULK(operation, C, s);            \
    BULK_COMMIT;                      \
    WAITS;                            \
  }                                   \
  __syncthreads()
KERNEL reads_what_was_stored(const half* A, half* C) {
  STORED(STORE, BULK_WAIT_WRITTEN(0));
  C[32 + t] = C[t];
}
KERNEL reads_what_may_not_be_stored(const half* A, half* C) {
  STORED(STORE, );
  C[32 + t] = C[t];  // BAD
  if (t == 0) BULK_WAIT;
}
KERNEL reads_once_the_source_is_free(const half* A, half* C) {
  STORED(STORE, BULK_WAIT);
  C[32 + t] = C[t];  // BAD
}
KERNEL reads_in_the_thread_that_stores(const half* A, half* C) {
  STORED(STORE, BULK_WAIT; C[64] = C[0]);  // BAD
}
KERNEL overwrites_what_is_being_stored(const half* A, half* C) {
  STORED(STORE, BULK_WAIT);
  C[31 - t] = A[32 + t];  // BAD
}
KERNEL stores_where_it_is_storing(const half* A, half* C) {
  STORED(STORE, BULK(STORE, C + 8, s); BULK_COMMIT; BULK_WAIT);  // BAD
}
KERNEL reads_what_was_added(const half* A, half* C) {
  STORED(ADD, BULK_WAIT_WRITTEN(0));
  C[32 + t] = C[t];
}
KERNEL reads_what_is_being_added(const half* A, half* C) {
  STORED(ADD, BULK_WAIT);
  C[32 + t] = C[t];  // BAD
}
KERNEL adds_twice(const half* A, half* C) {
  STORED(ADD, BULK(ADD, C + 32, s); BULK(ADD, C + 64, s); BULK(ADD, C + 64, s); BULK_COMMIT; BULK_WAIT);
}
KERNEL reads_the_older_group(const half* A, half* C) {
  STORED(STORE, BULK(STORE, C + 64, s); BULK_COMMIT; BULK_WAIT_WRITTEN(1));
  C[32 + t] = C[t];
  if (t == 0) BULK_WAIT;
}
KERNEL reads_the_newer_group(const half* A, half* C) {
  STORED(STORE, BULK(STORE, C + 64, s); BULK_COMMIT; BULK_WAIT_WRITTEN(1));
  C[32 + t] = C[64 + t];  // BAD
  if (t == 0) BULK_WAIT;
}
#define TILE_STORED_AND_LOADED(WAITS, LOADS)                  \
  __shared__ alignas(128) half s[32 * 32];                    \
  __shared__ alignas(8) u64 full;                             \
  const int t = threadIdx.x;                                  \
  if (t == 0) INIT(&full, 1);                                 \
  for (int e = t; e < 1024; e += 128) s[e] = half(float(e)); \
  FENCE_PROXY;                                                \
  __syncthreads();                                            \
  if (t == 0) {                                               \
    STORE_TILE(&C, 32, 0, s);                                 \
    BULK_COMMIT;                                              \
    WAITS;                                                    \
    EXPECT(&full, 2048);                                      \
    LOADS;                                                    \
  }                                                           \
  WAIT_FOR(&full, 0);                                         \
  for (int e = t; e < 1024; e += 128) A[e] = s[e]
KERNEL loads_the_tile_that_it_stored(const __grid_constant__ Map C, half* A) {
  TILE_STORED_AND_LOADED(BULK_WAIT_WRITTEN(0), LOAD_TILE(s, &C, 32, 0, &full));
}
KERNEL loads_a_tile_that_is_being_stored(const __grid_constant__ Map C, half* A) {
  TILE_STORED_AND_LOADED(BULK_WAIT, LOAD_TILE(s, &C, 32, 0, &full));  // BAD
}
#define LOADED(AT_ONCE, LATER)                                                                 \
  __shared__ alignas(128) half s[32];                                                          \
  __shared__ alignas(8) u64 full;                                                              \
  const int t = threadIdx.x;                                                                   \
  if (t == 0) INIT(&full, 1);                                                                  \
  C[t] = A[t];                                                                                 \
  FENCE_PROXY;                                                                                 \
  __syncthreads();                                                                             \
  if (t == 0) {                                                                                \
    EXPECT(&full, 64);                                                                         \
    asm volatile(                                                                              \
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 64, "   \
        "[%2];" ::"r"(AT(s)),                                                                  \
        "l"(C), "r"(AT(&full))                                                                 \
        : "memory");                                                                           \
    AT_ONCE;                                                                                   \
  }                                                                                            \
  __syncthreads();                                                                             \
  LATER;                                                                                       \
  C[32 + t] = s[t]
KERNEL overwrites_what_has_been_loaded(const half* A, half* C) {
  LOADED(, WAIT_FOR(&full, 0); C[t] = 0);
}
KERNEL overwrites_what_it_loads(const half* A, half* C) {
  LOADED(C[5] = 9, WAIT_FOR(&full, 0));  // BAD
}
KERNEL overwrites_what_another_loads(const half* A, half* C) {
  LOADED(, C[31 - t] = 9; WAIT_FOR(&full, 0));  // BAD
}

// --- clusters

#define PUT_IN_BLOCK(value) reinterpret_cast<int*>(C)[blockIdx.x * 32 + t] = value

KERNEL __cluster_dims__(2, 1, 1) exchanges(const half* A, half* C) {
  __shared__ int own[32];
  const int t = threadIdx.x, rank = rank_in_cluster();
  own[t] = rank * 100 + t;
  CLUSTER_SYNC;
  int got;
  LOAD_FROM(got, &own[t], rank ^ 1);
  CLUSTER_SYNC;
  PUT_IN_BLOCK(got);
}
KERNEL __cluster_dims__(2, 1, 1) peer_has_not_started(const half* A, half* C) {
  __shared__ int own[32];
  const int t = threadIdx.x, rank = rank_in_cluster();
  STORE_TO(&own[t], rank ^ 1, rank * 100 + t);  // BAD
  CLUSTER_SYNC;
  PUT_IN_BLOCK(own[t]);
}
KERNEL __cluster_dims__(2, 1, 1) peer_may_have_ended(const half* A, half* C) {
  __shared__ int own[32];
  const int t = threadIdx.x, rank = rank_in_cluster();
  own[t] = rank * 100 + t;
  CLUSTER_SYNC;
  int got;
  LOAD_FROM(got, &own[t], rank ^ 1);  // BAD
  PUT_IN_BLOCK(got);
}
KERNEL __cluster_dims__(2, 1, 1) peer_has_ended(const half* A, half* C) {
  __shared__ int own[32];
  const int t = threadIdx.x, rank = rank_in_cluster();
  own[t] = t;
  CLUSTER_SYNC;
  volatile int* flag = reinterpret_cast<volatile int*>(C) + 500;
  if (rank == 0) {
    *flag = 1;
    return;
  }
  while (!*flag) {
  }
  int got;
  LOAD_FROM(got, &own[t], 0);  // BAD
  PUT_IN_BLOCK(got);
}
KERNEL __cluster_dims__(2, 1, 1) overwrites_what_a_peer_reads(const half* A, half* C) {
  __shared__ int own[32];
  const int t = threadIdx.x, rank = rank_in_cluster();
  own[t] = rank * 100 + t;
  CLUSTER_SYNC;
  int got;
  LOAD_FROM(got, &own[t], rank ^ 1);  // BAD
  own[t] = got + 1;                   // BAD
  CLUSTER_SYNC;
  PUT_IN_BLOCK(own[t]);
}
// Each block writes what the other one has been told to wait for.
KERNEL __cluster_dims__(2, 1, 1) sends(const half* A, half* C) {
  __shared__ int inbox[32];
  __shared__ alignas(8) u64 arrived;
  const int t = threadIdx.x, rank = rank_in_cluster();
  if (t == 0) INIT(&arrived, 32);
  CLUSTER_SYNC;
  STORE_TO(&inbox[t], rank ^ 1, rank * 100 + t);
  ARRIVE_AT(&arrived, rank ^ 1);
  WAIT_FOR(&arrived, 0);
  PUT_IN_BLOCK(inbox[t]);
}
KERNEL __cluster_dims__(2, 1, 1) sent_and_not_waited_for(const half* A, half* C) {
  __shared__ int inbox[32];
  const int t = threadIdx.x, rank = rank_in_cluster();
  inbox[t] = 0;
  CLUSTER_SYNC;
  STORE_TO(&inbox[t], rank ^ 1, rank * 100 + t);  // BAD
  PUT_IN_BLOCK(inbox[t]);                         // BAD
  CLUSTER_SYNC;
}
KERNEL __cluster_dims__(2, 1, 1) arrives_before_the_barrier_is_there(const half* A, half* C) {
  __shared__ alignas(8) u64 arrived;
  const int t = threadIdx.x, rank = rank_in_cluster();
  CLUSTER_SYNC;
  if (t == 0) INIT(&arrived, 32);
  __syncthreads();
  ARRIVE_AT(&arrived, rank ^ 1);  // BAD
  CLUSTER_SYNC;
}

// One block loads for both; each waits at a barrier of its own.
KERNEL __cluster_dims__(2, 1, 1) multicasts(const __grid_constant__ Map A, half* C) {
  TILE_AND_BARRIER;
  if (t == 0) EXPECT(&full, TILE);
  CLUSTER_SYNC;
  if (t == 0 && rank_in_cluster() == 0) MULTICAST(s, &A, 32, 32, &full);
  WAIT_FOR(&full, 0);
  for (int e = t; e < 1024; e += 128) C[blockIdx.x * 1024 + e] = s[e];
  CLUSTER_SYNC;
}
KERNEL __cluster_dims__(2, 1, 1) tile_multicast_from_column_33(const __grid_constant__ Map A,
                                                               half* C) {
  TILE_AND_BARRIER;
  if (t == 0) EXPECT(&full, TILE);
  CLUSTER_SYNC;
  if (t == 0 && rank_in_cluster() == 0) MULTICAST(s, &A, 33, 32, &full);  // BAD
  WAIT_FOR(&full, 0);
  for (int e = t; e < 1024; e += 128) C[blockIdx.x * 1024 + e] = s[e];
  CLUSTER_SYNC;
}
KERNEL __cluster_dims__(2, 1, 1) multicasts_at_once(const __grid_constant__ Map A, half* C) {
  TILE_AND_BARRIER;
  if (t == 0) EXPECT(&full, TILE);
  if (t == 0 && rank_in_cluster() == 1) MULTICAST(s, &A, 32, 32, &full);  // BAD
  WAIT_FOR(&full, 0);
  for (int e = t; e < 1024; e += 128) C[blockIdx.x * 1024 + e] = s[e];
  CLUSTER_SYNC;
}
// A tile after the other: the first block fills the stage of both when both have given it back.
#define STAGE_OF_BOTH(consumers)           \
  __shared__ alignas(128) half s[32 * 32]; \
  __shared__ alignas(8) u64 full, empty;   \
  const int t = threadIdx.x;               \
  const u32 rank = rank_in_cluster();      \
  if (t == 0) {                            \
    INIT(&full, 1);                        \
    INIT(&empty, consumers);               \
    SHOW_INIT;                             \
  }                                        \
  CLUSTER_SYNC
#define SUM_UP \
  for (int e = t; e < 1024; e += 128) sums[e / 128] += __half2float(s[e])
#define PUT_SUMS \
  for (int e = t; e < 1024; e += 128) C[blockIdx.x * 1024 + e] = __float2half(sums[e / 128])

KERNEL __cluster_dims__(2, 1, 1) refills(const __grid_constant__ Map A, half* C) {
  STAGE_OF_BOTH(2 * 128);
  float sums[8] = {};
  for (int step = 0; step < 3; ++step) {
    if (t == 0) {
      EXPECT(&full, TILE);
      if (rank == 0 && step > 0) WAIT_FOR(&empty, (step - 1) % 2);
      if (rank == 0) MULTICAST(s, &A, 32, 0, &full);
    }
    WAIT_FOR(&full, step % 2);
    SUM_UP;
    ARRIVE_AT(&empty, 0);
  }
  PUT_SUMS;
  CLUSTER_SYNC;
}
KERNEL __cluster_dims__(2, 1, 1) refills_without_asking_the_peer(const __grid_constant__ Map A,
                                                                 half* C) {
  STAGE_OF_BOTH(128);
  float sums[8] = {};
  for (int step = 0; step < 3; ++step) {
    if (t == 0) {
      EXPECT(&full, TILE);
      if (rank == 0 && step > 0) WAIT_FOR(&empty, (step - 1) % 2);
      if (rank == 0) MULTICAST(s, &A, 32, 0, &full);  // BAD
    }
    WAIT_FOR(&full, step % 2);
    SUM_UP;  // BAD
    ARRIVE_AT(&empty, rank);
  }
  PUT_SUMS;
  CLUSTER_SYNC;
}

// --- arrivals that tell of nothing

#define OWN_AND_BARRIER                            \
  __shared__ int own[32];                          \
  __shared__ alignas(8) u64 full;                  \
  const int t = threadIdx.x, reader = t / 32 == 1; \
  if (t == 0) INIT(&full, 32);                     \
  __syncthreads()

KERNEL passes_on(const half* A, const half* B, float* C) {
  OWN_AND_BARRIER;
  if (t < 32) own[t] = 7 * t;
  if (t < 32) ARRIVE(&full);
  if (reader) {
    WAIT_FOR(&full, 0);
    C[t - 32] = own[t - 32];
  }
}
KERNEL passes_on_by_fences(const half* A, const half* B, float* C) {
  OWN_AND_BARRIER;
  if (t < 32) own[t] = 7 * t;
  if (t < 32) __threadfence_block();
  if (t < 32) ARRIVE_RELAXED(&full);
  if (reader) {
    WAIT_RELAXED_FOR(&full, 0);
    __threadfence_block();
    C[t - 32] = own[t - 32];
  }
}
KERNEL arrives_relaxed(const half* A, const half* B, float* C) {
  OWN_AND_BARRIER;
  if (t < 32) own[t] = 7 * t;  // BAD
  if (t < 32) ARRIVE_RELAXED(&full);
  if (reader) {
    WAIT_FOR(&full, 0);
    C[t - 32] = own[t - 32];  // BAD
  }
}
KERNEL waits_relaxed(const half* A, const half* B, float* C) {
  OWN_AND_BARRIER;
  if (t < 32) own[t] = 7 * t;  // BAD
  if (t < 32) ARRIVE(&full);
  if (reader) {
    WAIT_RELAXED_FOR(&full, 0);
    C[t - 32] = own[t - 32];  // BAD
  }
}
// A barrier whose arrivals are relaxed makes sure of the peer's start and end, not of its writes.
KERNEL __cluster_dims__(2, 1, 1) sends_between_relaxed_barriers(const half* A, half* C) {
  __shared__ int inbox[32];
  __shared__ alignas(8) u64 arrived;
  const int t = threadIdx.x, rank = rank_in_cluster();
  if (t == 0) INIT(&arrived, 32);
  FENCE_CLUSTER;
  CLUSTER_SYNC_RELAXED;
  STORE_TO(&inbox[t], rank ^ 1, rank * 100 + t);
  FENCE_CLUSTER;
  ARRIVE_RELAXED_AT(&arrived, rank ^ 1);
  WAIT_FOR(&arrived, 0);
  PUT_IN_BLOCK(inbox[t]);
  CLUSTER_SYNC_RELAXED;
}
KERNEL __cluster_dims__(2, 1, 1) exchanges_by_a_relaxed_barrier(const half* A, half* C) {
  __shared__ int own[32];
  const int t = threadIdx.x, rank = rank_in_cluster();
  own[t] = rank * 100 + t;  // BAD
  CLUSTER_SYNC_RELAXED;
  int got;
  LOAD_FROM(got, &own[t], rank ^ 1);  // BAD
  CLUSTER_SYNC;
  PUT_IN_BLOCK(got);
}

#define ONE_LANE_ARRIVES_AT_ITS_PEER(ORDER)               \
  __shared__ int inbox[32];                               \
  __shared__ alignas(8) u64 arrived;                      \
  const int t = threadIdx.x, rank = rank_in_cluster();    \
  if (t == 0) INIT(&arrived, 1);                          \
  CLUSTER_SYNC;                                           \
  STORE_TO(&inbox[t], rank ^ 1, rank * 100 + t);          \
  ORDER;                                                  \
  if (t == 0) ARRIVE_AT(&arrived, rank ^ 1);              \
  WAIT_FOR(&arrived, 0);                                  \
  PUT_IN_BLOCK(inbox[t]);                                 \
  CLUSTER_SYNC
KERNEL __cluster_dims__(2, 1, 1) one_lane_arrives_at_its_peer(const half* A, half* C) {
  ONE_LANE_ARRIVES_AT_ITS_PEER(__syncwarp());
}
KERNEL __cluster_dims__(2, 1, 1) one_lane_arrives_at_its_peer_early(const half* A, half* C) {
  ONE_LANE_ARRIVES_AT_ITS_PEER();  // BAD
}

// --- st.async

#define INBOX_OF_PAIRS(bytes)                          \
  __shared__ alignas(8) int inbox[64];                 \
  __shared__ alignas(8) u64 full;                      \
  const int t = threadIdx.x, rank = rank_in_cluster(); \
  if (t == 0) INIT(&full, 1);                          \
  if (t == 0) EXPECT(&full, bytes);                    \
  CLUSTER_SYNC

KERNEL __cluster_dims__(2, 1, 1) sends_pairs(const half* A, half* C) {
  INBOX_OF_PAIRS(256);
  STORE_ASYNC(&inbox[2 * t], rank ^ 1, rank * 100 + t, -t, &full);
  WAIT_FOR(&full, 0);
  PUT_IN_BLOCK(inbox[2 * t] - inbox[2 * (31 - t) + 1] - (31 - t));
}
KERNEL __cluster_dims__(2, 1, 1) pairs_not_waited_for(const half* A, half* C) {
  INBOX_OF_PAIRS(256);
  STORE_ASYNC(&inbox[2 * t], rank ^ 1, rank * 100 + t, -t, &full);  // BAD
  PUT_IN_BLOCK(inbox[2 * t]);                                       // BAD
  WAIT_FOR(&full, 0);
}
KERNEL __cluster_dims__(2, 1, 1) expects_too_few_pairs(const half* A, half* C) {
  INBOX_OF_PAIRS(128);
  STORE_ASYNC(&inbox[2 * t], rank ^ 1, rank * 100 + t, -t, &full);
  WAIT_FOR(&full, 0);
  PUT_IN_BLOCK(inbox[2 * t]);  // BAD
  CLUSTER_SYNC;
}
KERNEL __cluster_dims__(2, 1, 1) pairs_misaligned(const half* A, half* C) {
  INBOX_OF_PAIRS(256);
  STORE_ASYNC(&inbox[2 * t + 1], rank ^ 1, rank * 100 + t, -t, &full);  // BAD
  CLUSTER_SYNC;
}
KERNEL __cluster_dims__(2, 1, 1) pairs_to_another_blocks_barrier(const half* A, half* C) {
  INBOX_OF_PAIRS(256);
  STORE_ASYNC_AT(&inbox[2 * t], rank ^ 1, rank * 100 + t, -t, AT(&full));  // BAD
  CLUSTER_SYNC;
}

// --- what a peer wrote, read by the async proxy

#define TILE_FROM_A_PEER(value)                        \
  __shared__ alignas(128) int tile[32];                \
  const int t = threadIdx.x, rank = rank_in_cluster(); \
  CLUSTER_SYNC;                                        \
  STORE_TO(&tile[t], rank ^ 1, value)
#define STORE_OUT                                                                    \
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;" ::"l"( \
                   reinterpret_cast<int*>(C) + blockIdx.x * 32),                     \
               "r"(AT(tile))                                                         \
               : "memory")
KERNEL __cluster_dims__(2, 1, 1) stores_what_a_peer_wrote(const half* A, half* C) {
  TILE_FROM_A_PEER(rank * 100 + t);
  FENCE_PROXY;
  CLUSTER_SYNC;
  if (t == 0) {
    STORE_OUT;
    BULK_COMMIT;
    BULK_WAIT;
  }
}
KERNEL __cluster_dims__(2, 1, 1) fences_what_a_peer_wrote(const half* A, half* C) {
  TILE_FROM_A_PEER(rank * 100 + t);
  CLUSTER_SYNC;
  if (t == 0) {
    FENCE_PROXY;
    STORE_OUT;
    BULK_COMMIT;
    BULK_WAIT;
  }
}
KERNEL __cluster_dims__(2, 1, 1) stores_what_a_peer_wrote_unfenced(const half* A, half* C) {
  TILE_FROM_A_PEER(rank * 100 + t);
  CLUSTER_SYNC;
  if (t == 0) {
    STORE_OUT;  // BAD
    BULK_COMMIT;
    BULK_WAIT;
  }
}
#define COPIED_TO_THE_PEER(AT_ONCE)                                                             \
  __shared__ alignas(128) int tile[32], inbox[32];                                              \
  __shared__ alignas(8) u64 full;                                                               \
  const int t = threadIdx.x, rank = rank_in_cluster();                                          \
  if (t == 0) {                                                                                 \
    INIT(&full, 1);                                                                             \
    EXPECT(&full, 128);                                                                         \
  }                                                                                             \
  tile[t] = rank * 100 + t;                                                                     \
  FENCE_PROXY;                                                                                  \
  CLUSTER_SYNC;                                                                                 \
  if (t == 0)                                                                                   \
    asm volatile(                                                                               \
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], "   \
        "128, [%2];" ::"r"(of_block(inbox, rank ^ 1)),                                          \
        "r"(AT(tile)), "r"(of_block(&full, rank ^ 1))                                           \
        : "memory");                                                                            \
  __syncthreads();                                                                              \
  AT_ONCE;                                                                                      \
  WAIT_FOR(&full, 0);                                                                           \
  PUT_IN_BLOCK(inbox[t]);                                                                       \
  CLUSTER_SYNC;                                                                                 \
  tile[t] = t
KERNEL __cluster_dims__(2, 1, 1) copies_to_its_peer(const half* A, half* C) { COPIED_TO_THE_PEER(); }
KERNEL __cluster_dims__(2, 1, 1) overwrites_what_goes_to_its_peer(const half* A, half* C) {
  COPIED_TO_THE_PEER(tile[t] = 7);  // BAD
}
#define ONE_LANE_WRITES(ORDER)              \
  __shared__ half s[32];                    \
  const int t = threadIdx.x;                \
  if (t == 0) {                             \
    for (int k = 0; k < 32; ++k) s[k] = A[k]; \
    FENCE_PROXY;                            \
  }                                         \
  ORDER;                                    \
  C[32 + t] = s[t]
KERNEL one_lane_fences_and_all_meet(const half* A, half* C) { ONE_LANE_WRITES(__syncwarp()); }
KERNEL one_lane_fences_for_all(const half* A, half* C) {
  ONE_LANE_WRITES();  // BAD
}
