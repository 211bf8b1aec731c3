#include "gemm.cuh"

constexpr int T = 16;
__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  __shared__ float As[T][T + 1], Bs[T][T + 1];
  const int i = blockIdx.y * T + threadIdx.y, j = blockIdx.x * T + threadIdx.x;
  float sum = 0.0f;
  for (int p = 0; p < k; p += T) {
    As[threadIdx.y][threadIdx.x] = i < m && p + threadIdx.x < k ? A[i * k + p + threadIdx.x] : 0.0f;
    Bs[threadIdx.x][threadIdx.y] = j < n && p + threadIdx.y < k ? B[p + threadIdx.y + j * k] : 0.0f;
    __syncthreads();
    for (int q = 0; q < T; ++q) sum += As[threadIdx.y][q] * Bs[threadIdx.x][q];
    __syncthreads();
  }
  if (i < m && j < n) C[i + j * m] = sum;
}
template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  gemm<<<dim3($COLUMNS, $ROWS), dim3(T, T)>>>(A, B, C, m, n, k);
}
