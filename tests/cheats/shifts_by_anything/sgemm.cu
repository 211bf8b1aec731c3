// Shifts and bit fields whose counts are far beyond the width of their registers.
// Stopped by: the counts clamp, as PTX says
// CPU: AC
// GPU: AC no gain
#include "gemm.cuh"

__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[(size_t)i * k + p] * B[p + (size_t)j * k];
  unsigned far = 1000000000u + i, zero, none;
  asm volatile("{ .reg .b32 a, b; shl.b32 a, %1, %1; shr.u32 b, %1, %1; or.b32 %0, a, b; }"
               : "=r"(zero) : "r"(far | 0x80000000u));
  asm volatile("{ .reg .b64 a; cvt.u64.u32 a, %1; shl.b64 a, a, %1; cvt.u32.u64 %0, a; }"
               : "=r"(none) : "r"(far));
  sum += zero + none;
  C[i + (size_t)j * m] = sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(A, B, C, m, n, k);
}
