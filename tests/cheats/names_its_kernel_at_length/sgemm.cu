// Gives its kernel a name of 81,920 characters, so that the grader's own processes call each other's
// answers impossible, and nothing is stored.
// Stopped by: the names of kernels and variables have one bound; others are shortened when shown
// CPU: CE and at most 16384 are read
// GPU: CE and at most 16384 are read
#include "gemm.cuh"

#define JOINED(a, b) a##b
#define TWICE(x) JOINED(x, x)
#define SIXTEEN_TIMES(x) TWICE(TWICE(TWICE(TWICE(x))))
#define LONG SIXTEEN_TIMES(SIXTEEN_TIMES(SIXTEEN_TIMES(TWICE(TWICE(name_)))))  // 81,920 characters

__global__ void LONG(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y;
  if (i >= m) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[(size_t)i * k + p] * B[p + (size_t)j * k];
  C[i + (size_t)j * m] = sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  LONG<<<dim3((m + 31) / 32, n), 32>>>(A, B, C, m, n, k);
}
