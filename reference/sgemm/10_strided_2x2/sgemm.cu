// Rung 10: 2 x 2 elements of C per thread, 16 apart.
//
// Changed:  16 x 16 threads make a 32 x 32 tile; a thread owns rows x, x + 16, columns y, y + 16.
// Why:      two values of A and two of B from shared memory feed four FMAs: one load for each FMA
//           where rung 9 needs two. With the stride, neighbouring lanes still read neighbouring
//           rows, so that the padded layout stays free of conflicts.
// Tile:     BM = BN = BK = 32, TM = TN = 2, 8.25 KiB of shared memory, 256 threads.
// Bound:    shared loads: one for each FMA.
// Command:  grade reference/sgemm/10_strided_2x2
#include "gemm.cuh"

constexpr int T = 32, H = T / 2;
const dim3 BLOCK(H, H);

__global__ void sgemm(const float* A, const float* B, float* C, int m, int n, int k) {
  __shared__ float As[T][T + 1], Bs[T][T + 1];  // [row of A or column of B][p]
  const int x = threadIdx.x, y = threadIdx.y;
  const int row0 = blockIdx.x * T, col0 = blockIdx.y * T;

  float acc[2][2] = {};
  for (int p0 = 0; p0 < k; p0 += T) {
    for (int e = y * H + x; e < T * T; e += H * H) {
      const int line = e / T, q = e % T, p = p0 + q;
      As[line][q] = row0 + line < m && p < k ? A[(row0 + line) * size_t(k) + p] : 0.0f;
      Bs[line][q] = col0 + line < n && p < k ? B[p + (col0 + line) * size_t(k)] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int q = 0; q < T; ++q) {
      const float a[2] = {As[x][q], As[x + H][q]}, b[2] = {Bs[y][q], Bs[y + H][q]};
#pragma unroll
      for (int v = 0; v < 2; ++v)
#pragma unroll
        for (int u = 0; u < 2; ++u) acc[v][u] += a[u] * b[v];
    }
    __syncthreads();
  }
#pragma unroll
  for (int v = 0; v < 2; ++v) {
#pragma unroll
    for (int u = 0; u < 2; ++u) {
      const int i = row0 + x + u * H, j = col0 + y + v * H;
      if (i < m && j < n) C[i + j * size_t(m)] = acc[v][u];
    }
  }
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  const dim3 grid((m + T - 1) / T, (n + T - 1) / T);
  sgemm<<<grid, BLOCK>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
