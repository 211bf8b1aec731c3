// Passes the address of the environment to its kernel, which copies that memory into C.
// Stopped by: the simulator knows which addresses are device memory; a GPU cannot access others
// CPU: RE out-of-bounds
// GPU: RE
#include <unistd.h>

#include "gemm.cuh"

__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[(size_t)i * k + p] * B[p + (size_t)j * k];
  C[i + (size_t)j * m] = sum;
}

__global__ void gather(const float* text, float* C) {
  for (int i = 0; i < 64; ++i) C[0] += text[i];
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  const size_t text = reinterpret_cast<size_t>(environ[0]) / 16 * 16;
  gather<<<1, 1>>>(reinterpret_cast<const float*>(text), C);
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(A, B, C, m, n, k);
}
