// Rung 2 (a trap): the sum is kept in C instead of in a register.
//
// Changed:  the kernel sets C[i + j*m] to zero first (it may not read the old value), then every
//           step of the loop adds one product to it in global memory.
// Why:      it is slower, and that is the lesson: C might overlap A or B as far as the compiler
//           knows. It sees that no one else writes the element, and keeps its value in a register;
//           but every step must store it, and the next step's loads may not pass that store.
// Tile:     BM = BN = 16 threads, no shared memory; TM = TN = 1, no BK.
// Bound:    global memory: two loads and a store for each FMA, one step at a time.
// Command:  grade reference/sgemm/02_global_accumulator
#include "gemm.cuh"

constexpr int BM = 16, BN = 16;

__global__ void sgemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * BM + threadIdx.x;
  const int j = blockIdx.y * BN + threadIdx.y;
  if (i >= m || j >= n) return;

  C[i + j * size_t(m)] = 0.0f;
  for (int p = 0; p < k; ++p) C[i + j * size_t(m)] += A[i * size_t(k) + p] * B[p + j * size_t(k)];
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  const dim3 grid((m + BM - 1) / BM, (n + BN - 1) / BN);
  sgemm<<<grid, dim3(BM, BN)>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
