// Rung 02 (a trap): three products of TF32 for one of FP32, and a sum that is not good enough.
//
// Changed:  a number is the sum of two TF32 numbers, 11 bits and the 11 after them: the rest of
//           rounding to TF32 is a TF32 number again. Of the four products of parts three are
//           computed; both smaller parts' is below 2^-22 of the whole.
// Why:      three products at eight times the rate. On an A100 52 TFLOPS, where FP32 has 19.5.
// Errors:   the products would do, but the tensor core's sum truncates, always toward zero,
//           whenever it adds a step to the sum: 3072 times at K = 8192. On an H100 (2026-11-26) the
//           largest error is 2 tolerances at K = 1024, 7 at 8192 and 11 at 16384, where
//           cublasSgemm's is 0.45; a grade admits 2. At the simulator's sizes it passes.
// Tile:     128 x 128, BK = 32, warp 64 x 32, 3 stages of 32 KiB, 256 threads.
// Bound:    a third of the TF32 peak.
// Source:   CUTLASS, examples/27_ampere_3xtf32_fast_accurate_tensorop_gemm.
// Command:  grade --lab sgemm-tensor reference/sgemm-tensor/02_three_products
#include "gemm.cuh"
#include "tile.cuh"

// Leaves the larger part of `x` there, and returns the rest: of 12 bits, of which mma takes 11.
__device__ float split_off(float& x) {
  const float high = round_to_tf32(x), low = x - high;
  x = high;
  return low;
}

__global__ void __launch_bounds__(THREADS)
    sgemm(const float* A, const float* B, float* C, int m, int n, int k) {
  extern __shared__ Storage shared[];
  float sums[XS][YS][4] = {};
  const auto multiply = [&](const float* a, const float* b, int row, int column) {
#pragma unroll
    for (int p = 0; p < BK; p += 8) {
      float x[XS][4], y[YS / 2][4];
      for (int q = 0; q < XS; ++q) load_fragment(x[q], b, column + q * 16, p);
      for (int q = 0; q < YS / 2; ++q) load_fragment(y[q], a, row + q * 16, p);
      float x_low[XS][4], y_low[YS / 2][4];
      for (int q = 0; q < XS; ++q)
        for (int e = 0; e < 4; ++e) x_low[q][e] = split_off(x[q][e]);
      for (int q = 0; q < YS / 2; ++q)
        for (int e = 0; e < 4; ++e) y_low[q][e] = split_off(y[q][e]);
#pragma unroll
      for (int i = 0; i < XS; ++i)
#pragma unroll
        for (int j = 0; j < YS; ++j) {
          mma(sums[i][j], x_low[i], y[j / 2], j % 2);
          mma(sums[i][j], x[i], y_low[j / 2], j % 2);
          mma(sums[i][j], x[i], y[j / 2], j % 2);
        }
    }
  };
  each_tile(*shared, A, B, m, n, k, multiply);
  const int warp = threadIdx.x / 32;
  store(C, sums, blockIdx.x * BM + warp % (BM / WM) * WM, blockIdx.y * BN + warp / (BM / WM) * WN,
        m, n);
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  const dim3 grid((m + BM - 1) / BM, (n + BN - 1) / BN);
  cudaFuncSetAttribute(sgemm, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Storage));
  sgemm<<<grid, THREADS, sizeof(Storage)>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m,
                                            n, k);
}
