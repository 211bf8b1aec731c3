#include "gemm.cuh"
/* A tile of A
   in shared memory. */
__global__ void sgemm(const float* A, const float* B, float* C, int m, int n, int k) {
  __shared__ float tile[32][33];
  const char* word = "text & <b>not markup</b>";
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[p] * B[p];
  C[threadIdx.x] = sum;
}
