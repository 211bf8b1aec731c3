// Rung 11 (a trap): eight elements of C per thread, all in one row, four columns apart.
//
// Changed:  32 x 4 threads make a 32 x 32 tile; work per thread is 1 x 8 instead of 2 x 2.
// Why:      one value of A stays in a register for eight FMAs: 9 shared loads for 8 FMAs. More
//           work per thread, yet hardly fewer loads for each FMA than rung 10 (1.125 against 1):
//           reuse grows with both sides of the thread tile, not with its area (see rung 13 on).
//           A whole warp shares its columns, so every load of Bs is a broadcast.
// Tile:     BM = BN = BK = 32, TM = 1, TN = 8, 8.25 KiB of shared memory, 128 threads.
// Bound:    shared loads: 1.125 for each FMA.
// Command:  grade reference/sgemm/11_column_per_thread
#include "gemm.cuh"

constexpr int T = 32, TN = 8, COLS = T / TN;
const dim3 BLOCK(T, COLS);

__global__ void sgemm(const float* A, const float* B, float* C, int m, int n, int k) {
  __shared__ float As[T][T + 1], Bs[T][T + 1];  // [row of A or column of B][p]
  const int x = threadIdx.x, y = threadIdx.y;
  const int row0 = blockIdx.x * T, col0 = blockIdx.y * T;

  float acc[TN] = {};
  for (int p0 = 0; p0 < k; p0 += T) {
    const int p = p0 + x;
    for (int line = y; line < T; line += COLS) {
      As[line][x] = row0 + line < m && p < k ? A[(row0 + line) * size_t(k) + p] : 0.0f;
      Bs[line][x] = col0 + line < n && p < k ? B[p + (col0 + line) * size_t(k)] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int q = 0; q < T; ++q) {
      const float a = As[x][q];
#pragma unroll
      for (int w = 0; w < TN; ++w) acc[w] += a * Bs[y + w * COLS][q];
    }
    __syncthreads();
  }
#pragma unroll
  for (int w = 0; w < TN; ++w) {
    const int i = row0 + x, j = col0 + y + w * COLS;
    if (i < m && j < n) C[i + j * size_t(m)] = acc[w];
  }
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  const dim3 grid((m + T - 1) / T, (n + T - 1) / T);
  sgemm<<<grid, BLOCK>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
