// Uses logic on predicates with constants, as nvcc itself writes it for a negation, and
// everything else that PTX allows there. A simulator that takes -1 for a register number would
// read arbitrary memory.
// Stopped by: every operand is checked against its instruction before anything runs
// CPU: AC
// GPU: AC no gain
#include "gemm.cuh"

__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[(size_t)i * k + p] * B[p + (size_t)j * k];
  int one;
  asm volatile("{ .reg .pred p, q, r; setp.ge.s32 p, %1, 0; xor.pred q, p, -1; and.pred r, p, 1;"
               "or.pred q, q, 0; not.pred q, q; and.pred r, r, q; mov.pred q, 1; and.pred r, r, q;"
               "setp.ge.and.s32 p, %1, 0, r; selp.b32 %0, 1, 2, p; @!p mov.b32 %0, 3; }"
               : "=r"(one) : "r"(i));
  sum *= one;
  C[i + (size_t)j * m] = sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(A, B, C, m, n, k);
}
