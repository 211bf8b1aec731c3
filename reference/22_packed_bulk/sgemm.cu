// Rung 22: packed operands, brought by the copy engine.
//
// Changed:  a first kernel packs A and B: strips of 128 lines, [p][line], zero beyond the edges.
//           Then a K block of a tile is 8 KiB in one piece, for A as for B, and on sm_90 one thread
//           orders two bulk copies for it, which report to an mbarrier; others count the warps
//           that have read a stage. The warps take turns in ordering. Before sm_90: cp.async of 16
//           bytes. 16 x 8 per thread; two blocks of four warps for a multiprocessor.
// Why:      an issue slot holds one instruction, FFMA or not. Loading took rung 21 an address, a
//           copy and its share of predicates for every float; now it takes next to nothing, the
//           edges nothing. 128 FFMA need 6 LDS.128 instead of 8. Packing took 73 us of 2.6 ms at
//           4096 (H200, 2026-11-21).
// Tile:     BM = BN = 128, BK = 16, TM = 16, TN = 8, 6 stages, 96 KiB, 128 threads; 2 stages before
//           sm_90.
// Bound:    instruction issue, 0.93 of it FFMA.
// Command:  grade reference/22_packed_bulk
#include <cstdint>

#include "gemm.cuh"

namespace {

// --- asynchronous copies and their barriers

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return uint32_t(__cvta_generic_to_shared(pointer));
}

#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void barrier_expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ bool barrier_test(uint32_t barrier, uint32_t parity) {
  uint32_t over;
  asm volatile(
      "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(over) : "r"(barrier), "r"(parity) : "memory");
  return over;
}
__device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity) {
  while (!barrier_test(barrier, parity)) {
  }
}
__device__ __forceinline__ void bulk_copy(uint32_t to, const float* from, uint32_t bytes,
                                          uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
      ::"r"(to), "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}
#else
// 16 bytes from global to shared memory; in sm_80 and above under way until waited for.
__device__ __forceinline__ void copy16(float* to, const float* from) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from)
               : "memory");
#else
  *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from);
#endif
}
__device__ __forceinline__ void copies_end_group() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int N>
__device__ __forceinline__ void copies_wait() {  // until at most N groups are under way
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}
#endif

// --- packing: [row][p] to [row / LINE][p][row % LINE], zero beyond the edges

constexpr int LINE = 128;                       // rows of A, columns of B in a strip: a tile's
constexpr int PACK_K = 32, PACK_THREADS = 256;  // p of one packing block

__device__ __forceinline__ void pack_strip(const float* from, float* to, int strip, int rows, int k,
                                           int padded, float (*tile)[LINE + 1]) {
  const int row0 = strip * LINE, p0 = blockIdx.x * PACK_K;
  if (k % 4 == 0) {
#pragma unroll
    for (int x = 0; x < LINE * PACK_K / 4 / PACK_THREADS; ++x) {
      const int c = threadIdx.x + x * PACK_THREADS;
      const int q = c % (PACK_K / 4) * 4, r = c / (PACK_K / 4);
      float4 v = make_float4(0, 0, 0, 0);
      if (row0 + r < rows && p0 + q < k)
        v = *reinterpret_cast<const float4*>(from + size_t(row0 + r) * k + p0 + q);
      tile[q][r] = v.x, tile[q + 1][r] = v.y, tile[q + 2][r] = v.z, tile[q + 3][r] = v.w;
    }
  } else {
#pragma unroll
    for (int x = 0; x < LINE * PACK_K / PACK_THREADS; ++x) {
      const int c = threadIdx.x + x * PACK_THREADS, q = c % PACK_K, r = c / PACK_K;
      tile[q][r] = row0 + r < rows && p0 + q < k ? from[size_t(row0 + r) * k + p0 + q] : 0.0f;
    }
  }
  __syncthreads();
  to += (size_t(strip) * padded + p0) * LINE;
#pragma unroll
  for (int x = 0; x < LINE * PACK_K / PACK_THREADS; ++x) {
    const int c = threadIdx.x + x * PACK_THREADS;
    to[c] = tile[c / LINE][c % LINE];
  }
}

// Strips of A, then strips of B.
__global__ __launch_bounds__(PACK_THREADS) void pack(const float* A, const float* B,
                                                     float* packed_a, float* packed_b,
                                                     int strips_a, int m, int n, int k,
                                                     int padded) {
  __shared__ float tile[PACK_K][LINE + 1];  // odd: the transposing stores do not collide
  const int strip = blockIdx.y;
  if (strip < strips_a) pack_strip(A, packed_a, strip, m, k, padded, tile);
  else pack_strip(B, packed_b, strip - strips_a, n, k, padded, tile);
}

// --- the product: packed operands, 16 x 8 per thread, two blocks on a multiprocessor

constexpr int TM = 16, TN = 8;           // of a thread, in quads 16 rows and 32 columns apart
constexpr int LANES_I = 4, LANES_J = 8;  // of a warp, which computes 64 x 64
constexpr int WARPS_I = LINE / (TM * LANES_I), WARPS = WARPS_I * (LINE / (TN * LANES_J));
constexpr int THREADS = 32 * WARPS, BLOCKS = 2, BK = 16;
constexpr int STRIP = BK * LINE, STAGE = 2 * STRIP;  // floats: of one operand, of both

// What differs between generations: two stages where shared memory is small, else six.
template <int STAGES>
struct Pipeline {
  static constexpr int SHARED = STAGES * (STAGE * 4 + 16);
  // Blocks under way: with stages to spare, no warp waits for the slowest one.
  static constexpr int AHEAD = STAGES > 3 ? STAGES - 2 : STAGES;
};

struct Work {
  int m, n, k_blocks, tiles_m, tiles_n;
};

struct Where {
  int i, j;  // tile
};

// Tiles in bands of 11 tile rows: a wave of 264 blocks reads 11 + 24 strips.
__device__ __forceinline__ Where tile_at(int tile, const Work& w) {
  constexpr int BAND = 11;
  const int per = BAND * w.tiles_n, first = tile / per * BAND, rows = min(BAND, w.tiles_m - first);
  return {first + tile % per % rows, tile % per / rows};
}
// Column j (of TN) of a thread's patch, to C.
__device__ __forceinline__ void store_column(float* C, const float (&column)[TM], Where at, int j,
                                             const Work& w) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int row0 = at.i * LINE + warp % WARPS_I * (TM * LANES_I) + lane % LANES_I * 4;
  const int col = at.j * LINE + warp / WARPS_I * (TN * LANES_J) + lane / LANES_I * 4 +
                  j / 4 * (4 * LANES_J) + j % 4;
  if (col >= w.n) return;
#pragma unroll
  for (int i = 0; i < TM; i += 4) {
    const int row = row0 + i * LANES_I;
    float* to = C + row + size_t(col) * w.m;
    if (w.m % 4 == 0) {
      if (row < w.m)
        *reinterpret_cast<float4*>(to) =
            make_float4(column[i], column[i + 1], column[i + 2], column[i + 3]);
    } else {
#pragma unroll
      for (int x = 0; x < 4; ++x)
        if (row + x < w.m) to[x] = column[i + x];
    }
  }
}

template <int STAGES>
__global__ __launch_bounds__(THREADS, BLOCKS) void sgemm(const float* A, const float* B, float* C,
                                                         Work w) {
  constexpr int AHEAD = Pipeline<STAGES>::AHEAD;
  extern __shared__ __align__(128) float smem[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  // Byte addresses in shared memory: 32 bits, and opaque, so that they are kept and not made again.
  uint32_t base = shared_address(smem);
  uint32_t own_a = base + 4 * (warp % WARPS_I * (TM * LANES_I) + lane % LANES_I * 4);
  uint32_t own_b = base + 4 * (STRIP + warp / WARPS_I * (TN * LANES_J) + lane / LANES_I * 4);
  asm volatile("" : "+r"(base), "+r"(own_a), "+r"(own_b));

  const Where where = tile_at(blockIdx.x, w);
  const float* a_from = A + size_t(where.i) * w.k_blocks * STRIP;
  const float* b_from = B + size_t(where.j) * w.k_blocks * STRIP;

#if __CUDA_ARCH__ >= 900
  const uint32_t full = base + STAGES * STAGE * 4, empty = full + 8 * STAGES;
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) {
      barrier_init(full + 8 * s, 1);
      barrier_init(empty + 8 * s, WARPS);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  // Orders the copies of K block x, as soon as its stage is empty.
  auto fill = [&](int x) {
    const int s = x % STAGES;
    const uint32_t to = base + s * (STAGE * 4), barrier = full + 8 * s;
    barrier_wait(empty + 8 * s, (x / STAGES & 1) ^ 1);  // one never used counts as passed
    barrier_expect(barrier, STAGE * 4);
    bulk_copy(to, a_from + size_t(x) * STRIP, STRIP * 4, barrier);
    bulk_copy(to + STRIP * 4, b_from + size_t(x) * STRIP, STRIP * 4, barrier);
  };
  uint32_t parity = 0;
#else
  auto fill = [&](int x) {
    float* to = smem + x % STAGES * STAGE;
#pragma unroll
    for (int c = threadIdx.x * 4; c < STRIP; c += THREADS * 4)
      copy16(to + c, a_from + size_t(x) * STRIP + c);
#pragma unroll
    for (int c = threadIdx.x * 4; c < STRIP; c += THREADS * 4)
      copy16(to + STRIP + c, b_from + size_t(x) * STRIP + c);
  };
#endif

  float acc[TM][TN], a[2][TM], b[2][TN];
  auto load_quad = [](float* to, uint32_t from) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3]) : "r"(from) : "memory");
  };
  // Fragment f from row k of a stage.
  auto load = [&](int f, uint32_t as, uint32_t bs, int k) {
#pragma unroll
    for (int i = 0; i < TM; i += 4) load_quad(&a[f][i], as + 4 * (k * LINE + i * LANES_I));
#pragma unroll
    for (int j = 0; j < TN; j += 4) load_quad(&b[f][j], bs + 4 * (k * LINE + j * LANES_J));
  };
  // One rank-1 update.
  auto update = [&](int f) {
#pragma unroll
    for (int j = 0; j < TN; ++j)
#pragma unroll
      for (int i = 0; i < TM; ++i) acc[i][j] += a[f][i] * b[f][j];
  };

  __syncthreads();  // the barriers are there
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x == 0)
    for (int x = 0; x < AHEAD && x < w.k_blocks; ++x) fill(x);
  // The warps take turns in ordering the copies of the blocks that follow.
  int turn = threadIdx.x % 32 == 0 ? int(threadIdx.x) / 32 : 1 << 30;
  int filled = AHEAD + turn;
#else
#pragma unroll
  for (int x = 0; x < AHEAD; ++x) {
    if (x < w.k_blocks) fill(x);
    copies_end_group();
  }
#endif
#pragma unroll
  for (int i = 0; i < TM; ++i)
#pragma unroll
    for (int j = 0; j < TN; ++j) acc[i][j] = 0.0f;

#if __CUDA_ARCH__ >= 900
  barrier_wait(full, 0);
#else
  copies_wait<AHEAD - 1>();
  __syncthreads();
#endif
  uint32_t as = own_a, bs = own_b, offset = 0, barrier = 0;  // of the stage being read
  load(0, as, bs, 0);
  for (int it = 0;;) {
#pragma unroll
    for (int k = 0; k + 1 < BK; ++k) {
      load((k + 1) % 2, as, bs, k + 1);
      update(k % 2);
    }
    // The stage is read; on to the next.
#if __CUDA_ARCH__ >= 900
    __syncwarp();
    if (lane == 0) barrier_arrive(empty + barrier);
#endif
    offset += STAGE * 4;
    barrier += 8;
    if (barrier == 8 * STAGES) {
      offset = barrier = 0;
#if __CUDA_ARCH__ >= 900
      parity ^= 1;
#endif
    }
    if (++it == w.k_blocks) break;
#if __CUDA_ARCH__ >= 900
    if (turn-- == 0) {
      turn = WARPS - 1;
      if (filled < w.k_blocks) fill(filled);
      filled += WARPS;
    }
    barrier_wait(full + barrier, parity);
#else
    copies_wait<AHEAD - 2>();
    __syncthreads();
    if (it + AHEAD - 1 < w.k_blocks) fill(it + AHEAD - 1);
    copies_end_group();
#endif
    as = own_a + offset, bs = own_b + offset;
    load(0, as, bs, 0);
    update(1);
  }
  update(1);

#pragma unroll
  for (int j = 0; j < TN; ++j) {
    float column[TM];
#pragma unroll
    for (int i = 0; i < TM; ++i) column[i] = acc[i][j];
    store_column(C, column, where, j, w);
  }
}

// --- host

int ceil_div(int a, int b) { return (a + b - 1) / b; }

int attribute(cudaDeviceAttr which) {
  int value = 0;
  cudaDeviceGetAttribute(&value, which, 0);
  return value;
}

template <int STAGES>
void launch(const float* A, const float* B, float* C, int m, int n, int k) {
  const int padded = ceil_div(k, PACK_K) * PACK_K;
  const Work w = {m, n, padded / BK, ceil_div(m, LINE), ceil_div(n, LINE)};
  const size_t a_floats = size_t(w.tiles_m) * LINE * padded;
  const size_t b_floats = size_t(w.tiles_n) * LINE * padded;
  float* packed_a = nullptr;
  cudaMalloc(&packed_a, (a_floats + b_floats) * sizeof(float));
  float* packed_b = packed_a + a_floats;

  const dim3 strips(padded / PACK_K, w.tiles_m + w.tiles_n);
  pack<<<strips, PACK_THREADS>>>(A, B, packed_a, packed_b, w.tiles_m, m, n, k, padded);
  constexpr int SHARED = Pipeline<STAGES>::SHARED;
  cudaFuncSetAttribute(sgemm<STAGES>, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED);
  sgemm<STAGES><<<w.tiles_m * w.tiles_n, THREADS, SHARED>>>(packed_a, packed_b, C, w);
  cudaFree(packed_a);
}

}  // namespace

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  const float *A = d_A.data().get(), *B = d_B.data().get();
  float* C = d_C.data().get();
  if (attribute(cudaDevAttrComputeCapabilityMajor) >= 9) launch<6>(A, B, C, m, n, k);
  else launch<2>(A, B, C, m, n, k);
}
