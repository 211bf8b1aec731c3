// Rung 29: FFMA in an order that the register file can serve.
//
// Changed:  the order of the 128 FMAs of one value of k: down a column, up the next, so that each
//           differs from the one before in one factor only; packing swaps the rows of A in pairs.
//           Another map of the lanes. K blocks of 24, the main loop's body half of one. All this
//           is in reuse_order.cuh, pack.cuh and the Shape that the host names. The workspace is
//           kept between calls as in rung 28.
// Why:      registers lie in two banks, even and odd; an FFMA has three sources, and a bank gives
//           one register per cycle (benchmarks/calibration/register_banks.py). ptxas keeps much of
//           the source's order and marks a factor that stays with .reuse: it is not read again.
//           The other factor and the sum should lie in different banks. Both move in aligned
//           quads; with the rows of A swapped in pairs, a value of A and its sum always do. The 2
//           to 4 conflicts left for 128 FFMA depend on the order of the columns: this one was the
//           best of those compiled. Results of a load in which lanes share their quads with
//           their neighbours come twice as fast and take the banks from FFMAs, a cycle or so each
//           time; no load here is like that. A body of a whole K block would wait for the
//           instruction cache, and a shorter block costs more iterations.
// Tile:     BM = BN = 128, BK = 24, TM = 16, TN = 8, 4 stages, 96 KiB, 128 threads; before sm_90
//           BK = 16, 2 stages.
// Bound:    instruction issue, 0.93 of it FFMA.
// Command:  grade reference/sgemm/29_reuse_order
#include "gemm.cuh"
#include "pack.cuh"
#include "pipeline.cuh"
#include "reuse_order.cuh"
#include "workspace.cuh"

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
  PipelineState state;
  Pipeline<S> pipeline(smem, base, a_base, b_base);
  pipeline.init();
  float acc[TM][TN];
  pipeline.multiply(A, B, p.k_blocks, acc, state, ReuseOrder());
  // Vector stores want aligned quads of registers; an addition keeps that out of the loop.
  auto sum = [&](int i, int j) { return acc[i][j] + 0.0f; };
#pragma unroll
  for (int j = 0; j < TN; ++j) {
    float column[TM];
#pragma unroll
    for (int i = 0; i < TM; ++i) column[i] = sum(i, j);
    store_column<S, Lanes>(C, column, tile, warp, lane, j, p.m, p.n);
  }
}

template <class S>
void launch(const float* A, const float* B, float* C, int m, int n, int k) {
  const int padded = ceil_div(k, S::BK) * S::BK;
  const Problem p = {m, n, padded / S::BK, ceil_div(m, BM), ceil_div(n, S::BN)};
  const size_t a_floats = size_t(p.tiles_m) * BM * padded;
  const size_t b_floats = size_t(p.tiles_n) * S::BN * padded;
  float *packed_a = workspace(a_floats + b_floats), *packed_b = packed_a + a_floats;

  const dim3 panels(ceil_div(padded, PACK_K), p.tiles_m + p.tiles_n);
  pack<BM, S::BN><<<panels, PACK_THREADS>>>(A, B, packed_a, packed_b, p.tiles_m, m, n, k, padded);
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
    launch<Shape<128, 24, 12, 4>>(A, B, C, m, n, k);
  else launch<Shape<128, 16, 8, 2>>(A, B, C, m, n, k);
}
