// Tiles of T by T in shared memory, one element of C for each thread. PAD: floats added to each row of a
// tile. M_MAJOR 1: tiles are stored [p][row], 0: [row][p]. Sizes must be multiples of T.
#include "gemm.cuh"

__global__ void __launch_bounds__(T * T) product(const float* A, const float* B, float* C, int m, int n, int k) {
  __shared__ float As[T][T + PAD], Bs[T][T + PAD];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row0 = blockIdx.x * T, col0 = blockIdx.y * T;
  float sum = 0.0f;
  for (int p0 = 0; p0 < k; p0 += T) {
    const float a = A[size_t(row0 + y) * k + p0 + x], b = B[size_t(col0 + y) * k + p0 + x];
    (M_MAJOR ? As[x][y] : As[y][x]) = a;
    (M_MAJOR ? Bs[x][y] : Bs[y][x]) = b;
    __syncthreads();
#pragma unroll
    for (int p = 0; p < T; ++p) sum += (M_MAJOR ? As[p][x] : As[x][p]) * (M_MAJOR ? Bs[p][y] : Bs[y][p]);
    __syncthreads();
  }
  C[size_t(col0 + y) * m + row0 + x] = sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  product<<<dim3(m / T, n / T), dim3(T, T)>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
