// One element of C for each thread, everything from global memory. BX, BY: threads of a block; ROWS 1:
// threadIdx.x runs along the rows of C, so a warp's loads of A are far apart and of B the same; 0: along
// the columns. UNROLL: steps along K written out.
#include "gemm.cuh"

constexpr int STEPS = UNROLL;

__global__ void product(const float* A, const float* B, float* C, int m, int n, int k) {
  const int x = blockIdx.x * BX + threadIdx.x, y = blockIdx.y * BY + threadIdx.y;
  const int i = ROWS ? x : y, j = ROWS ? y : x;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
#pragma unroll STEPS
  for (int p = 0; p < k; ++p) sum += A[size_t(i) * k + p] * B[size_t(j) * k + p];
  C[size_t(j) * m + i] = sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  const int across = ROWS ? m : n, down = ROWS ? n : m;
  const dim3 grid((across + BX - 1) / BX, (down + BY - 1) / BY);
  product<<<grid, dim3(BX, BY)>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
