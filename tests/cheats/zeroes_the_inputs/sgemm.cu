// Zeroes A and C, so that a reference computed later from the same A is zero too.
// Stopped by: A and B are new for every launch and are checked after it
// CPU: WA input-modified
// GPU: WA
#include "gemm.cuh"

__global__ void gemm(float* A, const float* B, float* C, int m, int n, int k) {
  const size_t at = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (at < (size_t)m * k) A[at] = 0.0f;
  if (at < (size_t)m * n) C[at] = 0.0f;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  const size_t most = size_t(m) * (k > n ? k : n);
  gemm<<<unsigned((most + 255) / 256), 256>>>(A, B, C, m, n, k);
}
