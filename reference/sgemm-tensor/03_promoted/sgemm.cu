// Rung 03: partial sums on tensor cores, the whole in FP32.
//
// Changed:  the tensor cores' sums begin at zero for every tile of 32 values of k; then they are
//           added to the thread's sums in FP32, with rounding to nearest.
// Why:      truncation loses up to a last bit of the *sum*. Partial sums of 12 steps are small, of
//           either sign, and so are their errors; the additions that see the whole sum round, and
//           rounding has no side it prefers. It costs 64 additions for each thread and tile, beside
//           192 mma for each warp.
// Tile:     128 x 128, BK = 32, warp 64 x 32, 3 stages of 32 KiB, 256 threads.
// Bound:    a third of the TF32 peak, of which mma.sync reaches two thirds on Hopper.
// Source:   Ootomo, Yokota, "Recovering single precision accuracy from Tensor Cores while
//           surpassing the FP32 theoretical peak performance", 2022.
// Command:  grade --lab sgemm-tensor reference/sgemm-tensor/03_promoted
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
    float some[XS][YS][4] = {};  // of BK values of k
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
          mma(some[i][j], x_low[i], y[j / 2], j % 2);
          mma(some[i][j], x[i], y_low[j / 2], j % 2);
          mma(some[i][j], x[i], y[j / 2], j % 2);
        }
    }
#pragma unroll
    for (int i = 0; i < XS; ++i)
#pragma unroll
      for (int j = 0; j < YS; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) sums[i][j][e] += some[i][j][e];
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
