// Counts its launches in a device variable; every third one leaves C as it is.
// Stopped by: device memory lives on from call to call, and every output is compared
// CPU: WA the first two calls are right, the third is not: the previous call changed launches
// GPU: WA
#include "gemm.cuh"

__device__ unsigned launches;

__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (launches % 3 == 2 || i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[(size_t)i * k + p] * B[p + (size_t)j * k];
  C[i + (size_t)j * m] = sum;
}

__global__ void count() { ++launches; }

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  const dim3 grid((m + 31) / 32, (n + 7) / 8), block(32, 8);
  gemm<<<grid, block>>>(A, B, C, m, n, k);
  count<<<1, 1>>>();
}
