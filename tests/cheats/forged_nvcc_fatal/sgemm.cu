// Fails with the message of an nvcc that cannot run on this machine.
// Stopped by: a trial build tells a broken machine from a broken submission
// CPU: CE
// GPU: CE
#include "gemm.cuh"

#pragma message("\nnvcc fatal   : Unsupported gpu architecture 'compute_80'\n")
#line 1 "nvcc fatal   : Unsupported gpu architecture 'compute_80'\nnvcc error   : 'cicc' died due to signal 9 (Kill signal)\n"
#error

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
