// Fails with the message of a compiler that lacks a header of CuTe, as if the machine lacked it.
// Stopped by: a header is missing only if the line that the message names includes it
// CPU: CE No such file
// GPU: CE
#include "gemm.cuh"

#pragma message("\nsgemm.cu:7:10: fatal error: cute/tensor.hpp: No such file or directory\n")
#line 1 "sgemm.cu:7:10: fatal error: cute/tensor.hpp: No such file or directory"
#error cute/tensor.hpp: No such file or directory

__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[(size_t)i * k + p] * B[p + (size_t)j * k];
  C[i + (size_t)j * m] = sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(A, B, C, m, n, k);
}
