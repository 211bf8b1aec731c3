// Rung 1: one thread per element of C, neighbouring threads along a row.
//
// Changed:  the start of the ladder. threadIdx.x runs along columns of C, so a warp covers 32
//           neighbours of one row.
// Why:      B and C are row-major: the lanes of a warp read neighbours of B and write neighbours of
//           C, and all read the same element of A.
// Tile:     BM = 8, BN = 32 threads, no shared memory; TM = TN = 1, no BK.
// Bound:    global loads: two for each FMA.
// Command:  grade reference/sgemm-row/01_naive --lab sgemm-row
#include "gemm.cuh"

constexpr int BM = 8, BN = 32;

__global__ void sgemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int row = blockIdx.y * BM + threadIdx.y;
  const int col = blockIdx.x * BN + threadIdx.x;
  if (row >= m || col >= n) return;

  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[row * size_t(k) + p] * B[p * size_t(n) + col];
  C[row * size_t(n) + col] = sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  const dim3 grid((n + BN - 1) / BN, (m + BM - 1) / BM);
  sgemm<<<grid, dim3(BN, BM)>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
