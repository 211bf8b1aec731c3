// Keeps its inputs as BF16, for half the traffic.
// Stopped by: inputs keep the bits that TF32 and BF16 drop, and the tolerance is FP32's
// CPU: WA
// GPU: WA
#include <cuda_bf16.h>

#include "gemm.cuh"

__device__ float rounded(float x) {
  return __bfloat162float(__float2bfloat16(x));
}

__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += rounded(A[(size_t)i * k + p]) * rounded(B[p + (size_t)j * k]);
  C[i + (size_t)j * m] = sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(A, B, C, m, n, k);
}
