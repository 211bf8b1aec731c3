// Writes NaN, which passes a check of the form `error > tolerance`.
// Stopped by: `not (error <= tolerance)`: NaN is wrong
// CPU: WA
// GPU: WA
#include "gemm.cuh"

__global__ void gemm(float* C, int m, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < m && j < n) C[i + (size_t)j * m] = __int_as_float(0x7fffffff);
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(C, m, n);
}
