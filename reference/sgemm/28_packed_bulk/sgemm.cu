// Rung 28: packed operands, copied in bulk.
//
// Changed:  a first kernel packs A and B: panels of 128 rows, [p][row], zero beyond the edges.
//           Then a K block of a tile is 8 KiB in one piece, for A as for B, and on sm_90 one thread
//           starts two bulk copies for it, which report to an mbarrier; others count the warps
//           that have read a stage. The warps take turns at this. Before sm_90: cp.async of 16
//           bytes. 16 x 8 per thread; two blocks of four warps for a multiprocessor. The main
//           loop is in pipeline.cuh. The panels lie in a workspace that is kept for the next call:
//           workspace.cuh says why.
// Why:      an issue slot holds one instruction, FFMA or not. Loading took rung 25 an address, a
//           copy and its share of predicates for every float; now it takes next to nothing, the
//           edges nothing. 128 FFMA need 6 LDS.128 instead of 8. Packing took 73 us of 2.6 ms at
//           4096 (H200, 2026-11-21).
// Tile:     BM = BN = 128, BK = 16, TM = 16, TN = 8, 6 stages, 96 KiB, 128 threads; 2 stages before
//           sm_90.
// Bound:    instruction issue, 0.93 of it FFMA.
// Command:  grade reference/sgemm/28_packed_bulk
#include "gemm.cuh"
#include "pipeline.cuh"
#include "workspace.cuh"

// --- packing: [row][p] to [row / PANEL][p][row % PANEL], zero beyond the edges

constexpr int PANEL = 128;                       // rows of A, columns of B in a panel: a tile's
constexpr int PACK_K = 32, PACK_THREADS = 256;  // p of one packing block

__device__ __forceinline__ void pack_panel(const float* from, float* to, int panel, int rows, int k,
                                           int padded, float (*tile)[PANEL + 1]) {
  const int row0 = panel * PANEL, p0 = blockIdx.x * PACK_K;
  if (k % 4 == 0) {
#pragma unroll
    for (int x = 0; x < PANEL * PACK_K / 4 / PACK_THREADS; ++x) {
      const int c = threadIdx.x + x * PACK_THREADS;
      const int q = c % (PACK_K / 4) * 4, r = c / (PACK_K / 4);
      float4 v = make_float4(0, 0, 0, 0);
      if (row0 + r < rows && p0 + q < k)
        v = *reinterpret_cast<const float4*>(from + size_t(row0 + r) * k + p0 + q);
      tile[q][r] = v.x, tile[q + 1][r] = v.y, tile[q + 2][r] = v.z, tile[q + 3][r] = v.w;
    }
  } else {
#pragma unroll
    for (int x = 0; x < PANEL * PACK_K / PACK_THREADS; ++x) {
      const int c = threadIdx.x + x * PACK_THREADS, q = c % PACK_K, r = c / PACK_K;
      tile[q][r] = row0 + r < rows && p0 + q < k ? from[size_t(row0 + r) * k + p0 + q] : 0.0f;
    }
  }
  __syncthreads();
  to += (size_t(panel) * padded + p0) * PANEL;
#pragma unroll
  for (int x = 0; x < PANEL * PACK_K / PACK_THREADS; ++x) {
    const int c = threadIdx.x + x * PACK_THREADS;
    to[c] = tile[c / PANEL][c % PANEL];
  }
}

// Strips of A, then panels of B.
__global__ __launch_bounds__(PACK_THREADS) void pack(const float* A, const float* B,
                                                     float* packed_a, float* packed_b,
                                                     int panels_a, int m, int n, int k,
                                                     int padded) {
  __shared__ float tile[PACK_K][PANEL + 1];  // odd: the transposing stores do not collide
  const int panel = blockIdx.y;
  if (panel < panels_a) pack_panel(A, packed_a, panel, m, k, padded, tile);
  else pack_panel(B, packed_b, panel - panels_a, n, k, padded, tile);
}

// --- the product

struct Lanes {
  __device__ __forceinline__ static int row(int lane) { return lane % LANES_M; }
  __device__ __forceinline__ static int col(int lane) { return lane / LANES_M; }
};

struct PlainOrder {
  __device__ __forceinline__ void operator()(float (&acc)[TM][TN], const float (&a)[TM],
                                             const float (&b)[TN]) const {
#pragma unroll
    for (int j = 0; j < TN; ++j)
#pragma unroll
      for (int i = 0; i < TM; ++i) acc[i][j] += a[i] * b[j];
  }
};

struct Problem {
  int m, n, k_blocks, tiles_m, tiles_n;
};

template <class S>
__global__ __launch_bounds__(S::THREADS, S::BLOCKS) void sgemm(const float* A, const float* B,
                                                               float* C, Problem p) {
  extern __shared__ __align__(128) float smem[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t base = shared_address(smem);
  uint32_t a_base = base + 4 * (warp % WARPS_M * WM + Lanes::row(lane) * 4);
  uint32_t b_base = base + 4 * (S::A_STAGE + warp / WARPS_M * WN + Lanes::col(lane) * 4);
  asm volatile("" : "+r"(base), "+r"(a_base), "+r"(b_base));
  const Tile tile = tile_at(blockIdx.x, p.tiles_m, p.tiles_n);
  A += size_t(tile.i) * p.k_blocks * S::A_STAGE;
  B += size_t(tile.j) * p.k_blocks * S::B_STAGE;
  Pipeline<S> pipeline(smem, base, a_base, b_base);
  pipeline.init();
  PipelineState state;
  float acc[TM][TN];
  pipeline.multiply(A, B, p.k_blocks, acc, state, PlainOrder());
#pragma unroll
  for (int j = 0; j < TN; ++j) {
    float column[TM];
#pragma unroll
    for (int i = 0; i < TM; ++i) column[i] = acc[i][j];
    store_column<S, Lanes>(C, column, tile, warp, lane, j, p.m, p.n);
  }
}

template <class S>
void launch(const float* A, const float* B, float* C, int m, int n, int k) {
  const int padded = ceil_div(k, PACK_K) * PACK_K;
  const Problem p = {m, n, padded / S::BK, ceil_div(m, BM), ceil_div(n, S::BN)};
  const size_t a_floats = size_t(p.tiles_m) * BM * padded;
  const size_t b_floats = size_t(p.tiles_n) * S::BN * padded;
  float *packed_a = workspace(a_floats + b_floats), *packed_b = packed_a + a_floats;

  const dim3 panels(padded / PACK_K, p.tiles_m + p.tiles_n);
  pack<<<panels, PACK_THREADS>>>(A, B, packed_a, packed_b, p.tiles_m, m, n, k, padded);
  cudaFuncSetAttribute(sgemm<S>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::SHARED);
  sgemm<S><<<p.tiles_m * p.tiles_n, S::THREADS, S::SHARED>>>(packed_a, packed_b, C, p);
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  const float *A = d_A.data().get(), *B = d_B.data().get();
  float* C = d_C.data().get();
  if (attribute(cudaDevAttrComputeCapabilityMajor) >= 9)
    launch<Shape<128, 16, 16, 6>>(A, B, C, m, n, k);
  else launch<Shape<128, 16, 16, 2>>(A, B, C, m, n, k);
}
