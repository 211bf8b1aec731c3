// Rung 1: one thread per element of C, straight from the definition.
//
// Changed:  the start of the ladder. threadIdx.x runs along rows of C, threadIdx.y along columns.
// Why:      m*n independent dot products fill the device; nothing is reused on purpose.
// Tile:     BM = BN = 16 threads, no shared memory; TM = TN = 1, no BK.
// Bound:    global loads. Two loads per FMA, and the lanes of a warp read A k floats apart, so
//           each load of A touches one 32-byte sector per row (16 rows in a warp of 16 x 2).
// Command:  grade reference/sgemm/01_naive
#include "gemm.cuh"

constexpr int BM = 16, BN = 16;

__global__ void sgemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * BM + threadIdx.x;
  const int j = blockIdx.y * BN + threadIdx.y;
  if (i >= m || j >= n) return;

  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[i * size_t(k) + p] * B[p + j * size_t(k)];
  C[i + j * size_t(m)] = sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  const dim3 grid((m + BM - 1) / BM, (n + BN - 1) / BN);
  sgemm<<<grid, dim3(BM, BN)>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
