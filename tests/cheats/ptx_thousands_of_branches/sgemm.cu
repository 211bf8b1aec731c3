// Makes the simulator analyse thousands of branches.
// Stopped by: the simulator takes at most 4096 basic blocks
// CPU: IE basic blocks
// GPU: AC no gain
#include "gemm.cuh"

#define BRANCH "{ .reg .pred q; setp.gt.f32 q, %0, 0f7F000000; @q bra D; D: }"
#define TEN(text) text text text text text text text text text text
#define BRANCHES() asm volatile(TEN(TEN(TEN(BRANCH))) : "+f"(sum))

__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[(size_t)i * k + p] * B[p + (size_t)j * k];
  BRANCHES();
  BRANCHES();
  BRANCHES();
  BRANCHES();
  BRANCHES();
  C[i + (size_t)j * m] = sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(A, B, C, m, n, k);
}
