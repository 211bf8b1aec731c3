// Rung 01 (a trap): TF32. It is fast, and fails.
//
// Changed:  the product on tensor cores, by mma.sync, as in reference/hgemm, rungs 3 to 5: tiles by
//           cp.async in three stages, swizzled, fragments by ldmatrix. Numbers are rounded to TF32,
//           which has the exponents of FP32 and 11 of its 24 bits.
// Why:      an A100 multiplies TF32 eight times as fast as FP32. What it costs: an error of up to
//           2^-11 in every factor, a hundred to a thousand tolerances of this lab.
// Tile:     128 x 128, BK = 32, warp 64 x 32, 3 stages of 32 KiB, 256 threads.
// Bound:    the TF32 peak.
// Command:  grade --lab sgemm-tensor reference/sgemm-tensor/01_tf32
#include "gemm.cuh"
#include "tile.cuh"

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
      for (auto& fragment : x)
        for (float& value : fragment) value = round_to_tf32(value);
      for (auto& fragment : y)
        for (float& value : fragment) value = round_to_tf32(value);
#pragma unroll
      for (int i = 0; i < XS; ++i)
#pragma unroll
        for (int j = 0; j < YS; ++j) mma(sums[i][j], x[i], y[j / 2], j % 2);
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
