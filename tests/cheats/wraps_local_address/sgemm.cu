// Writes 16 bytes of its local memory at 2^64 - 16, so that the end of the access wraps to zero.
// Stopped by: bounds are checked by subtraction, on unsigned numbers
// CPU: RE out-of-bounds
// GPU: AC no gain
#include "gemm.cuh"

__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  volatile float own[8];
  own[i & 7] = 1;
  asm volatile("st.local.v4.f32 [%0], {%1, %1, %1, %1};" ::"l"(0xfffffffffffffff0ull), "f"(own[0])
               : "memory");
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
