// Rung 4 (a trap): many blocks again, with rows and columns swapped and a block one warp wide.
//
// Changed:  threadIdx.x runs along columns of C, threadIdx.y along rows, so a warp is one row of C.
//           In this layout (both inputs contiguous along K) that makes the load of A a broadcast:
//           one sector. The price is B, now read k floats apart, and a strided store of C.
// Why:      it gains nothing. No mapping of one thread per element coalesces both inputs here: one
//           is a broadcast and the other strided. Only shared memory (next) fixes that.
// Tile:     BM = 8, BN = 32 threads, no shared memory; TM = TN = 1, no BK.
// Bound:    global loads: 1 sector per load of A, 32 per load of B and per store of C.
// Command:  grade reference/sgemm/04_coalesced
#include "gemm.cuh"

constexpr int BM = 8, BN = 32;

__global__ void sgemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * BM + threadIdx.y;
  const int j = blockIdx.y * BN + threadIdx.x;
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
  sgemm<<<grid, dim3(BN, BM)>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
