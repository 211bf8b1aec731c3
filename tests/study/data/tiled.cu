#include "gemm.cuh"
#ifndef T
#define T 8
#endif
#ifndef EXTRA
#define EXTRA 1
#endif
__global__ void tiled(const float* A, const float* B, float* C, int m, int n, int k) {
  __shared__ float a[T][T + 1], b[T][T + 1], extra[EXTRA];
  const int row = blockIdx.x * T + threadIdx.x, column = blockIdx.y * T + threadIdx.y;
  float sum = EXTRA == 2 ? 1 : 0;
  for (int p = 0; p < k; p += T) {
    const int q = p + threadIdx.x, j = blockIdx.y * T + threadIdx.y;
    const int i = blockIdx.x * T + threadIdx.y;
    a[threadIdx.y][threadIdx.x] = i < m && q < k ? A[i * k + q] : 0;
    b[threadIdx.y][threadIdx.x] = j < n && q < k ? B[q + j * k] : 0;
    if (EXTRA > 2) extra[threadIdx.x] = a[0][0];
    __syncthreads();
    for (int s = 0; s < T; ++s) sum += a[threadIdx.x][s] * b[threadIdx.y][s];
    __syncthreads();
  }
  if (EXTRA > 2 && k < 0) sum += extra[m];
  if (row < m && column < n) C[row + column * m] = sum;
}
template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  const dim3 grid((m + T - 1) / T, (n + T - 1) / T), block(T, T);
  tiled<<<grid, block>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
