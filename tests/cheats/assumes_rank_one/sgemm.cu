// Takes C to be the outer product of its first column and row.
// Stopped by: inputs are random, dense and of full rank
// CPU: WA
// GPU: WA
#include "gemm.cuh"

__device__ float dot(const float* A, const float* B, int i, int j, int k) {
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[(size_t)i * k + p] * B[p + (size_t)j * k];
  return sum;
}

__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n) return;
  C[i + (size_t)j * m] = dot(A, B, i, 0, k) * dot(A, B, 0, j, k) / dot(A, B, 0, 0, k);
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(A, B, C, m, n, k);
}
