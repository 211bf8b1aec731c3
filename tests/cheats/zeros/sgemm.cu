// Writes zeros, as if inputs were small or errors did not matter.
// Stopped by: C is compared in units of its own magnitude
// CPU: WA C is all zeros
// GPU: WA
#include "gemm.cuh"

__global__ void gemm(float* C, int m, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < m && j < n) C[i + (size_t)j * m] = 0.0f;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(C, m, n);
}
