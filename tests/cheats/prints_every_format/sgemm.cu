// Gives device printf every format that the C library's printf would obey: %n, positions, a width
// of a billion, missing arguments.
// Stopped by: the simulator formats device printf itself; on a GPU the build defines printf
// CPU: AC
// GPU: AC no gain
#include <cstdio>

#include "gemm.cuh"

__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (m < 100 && i == 0 && j == 0) {
    printf("%n %hhn %1$s %2$n %p %p %p\n", C, C);
    printf("%1000000000d %.1000000000f %*d\n", 1, 1.0, 1 << 30, 7);
    printf("%d %s %f %p %x %x %x %x %x %x\n");
    printf("%");
    printf("%-+ #0");
    printf("%lllllllld %hhhhd %Lf %zd %m\n", 1ll);
  }
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
