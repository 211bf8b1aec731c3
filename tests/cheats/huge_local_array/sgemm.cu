// A megabyte of local memory in every thread.
// Stopped by: a thread has 512 KB of it, on a GPU and in the simulator
// CPU: RE CUDA allows
// GPU: RE
#include "gemm.cuh"

__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[(size_t)i * k + p] * B[p + (size_t)j * k];
  volatile float own[1 << 18];
  for (int p = 0; p < 1 << 18; p += 1024) own[p] = sum;
  sum = own[(k * 1024) & ((1 << 18) - 1)];
  C[i + (size_t)j * m] = sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(A, B, C, m, n, k);
}
