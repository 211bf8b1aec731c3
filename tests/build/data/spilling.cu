#include "gemm.cuh"
__global__ void __launch_bounds__(1024, 2) spills(float* p) {
  float a[40];
#pragma unroll
  for (int i = 0; i < 40; i++) a[i] = p[i * 32 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 40; i += 13)
#pragma unroll
    for (int j = 0; j < 40; j++) a[j] = a[j] * a[i] + a[(j + 7) % 40];
#pragma unroll
  for (int i = 0; i < 40; i++) p[i * 32 + threadIdx.x] = a[i];
}
__global__ void local_array(float* p, int n) {
  float a[40];
  for (int i = 0; i < 40; i++) a[i] = p[i * n];
  for (int i = 0; i < n; i++) a[(i * 7) % 40] += a[i % 40];
  for (int i = 0; i < 40; i++) p[i] = a[i];
}
__global__ void shares(float* p) {
  __shared__ float s[100];
  extern __shared__ float more[];
  s[threadIdx.x] = more[threadIdx.x] = p[0];
  __syncthreads();
  p[1] = s[3] + more[5];
}
