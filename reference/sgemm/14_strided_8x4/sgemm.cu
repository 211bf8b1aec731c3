// Rung 14: a thread tile of 8 x 4 elements, 8 and 16 apart.
//
// Changed:  8 x 16 threads instead of 16 x 16 share the same tile of 64 x 64; a thread owns every
//           eighth row and every sixteenth column.
// Why:      12 values feed 32 FMAs: 0.375 shared loads for each FMA instead of 0.5. The tiles in
//           shared memory, and so the global traffic, stay as they are: half as many threads do
//           the same work, and more of it comes from registers.
// Tile:     BM = BN = 64, BK = 32, TM = 8, TN = 4, 16.5 KiB of shared memory, 128 threads.
// Bound:    shared loads: 0.375 for each FMA.
// Command:  grade reference/sgemm/14_strided_8x4
#include "gemm.cuh"

constexpr int BM = 64, BN = 64, BK = 32, TM = 8, TN = 4;
constexpr int X = BM / TM, Y = BN / TN, THREADS = X * Y;

// tile[line][q] = from[first + line][p0 + q], zero outside the `lines` by `k` of `from`.
template <int LINES>
__device__ void load(float (*tile)[BK + 1], const float* from, int first, int lines, int p0,
                     int k) {
  const int q = threadIdx.x % BK, p = p0 + q;
#pragma unroll
  for (int r = 0; r < LINES; r += THREADS / BK) {
    const int line = threadIdx.x / BK + r;
    tile[line][q] = first + line < lines && p < k ? from[(first + line) * size_t(k) + p] : 0.0f;
  }
}

__global__ void __launch_bounds__(THREADS)
    sgemm(const float* A, const float* B, float* C, int m, int n, int k) {
  __shared__ float As[BM][BK + 1], Bs[BN][BK + 1];  // [row of A or column of B][p]
  const int x = threadIdx.x % X, y = threadIdx.x / X;
  const int row0 = blockIdx.x * BM, col0 = blockIdx.y * BN;

  float acc[TN][TM] = {};
  for (int p0 = 0; p0 < k; p0 += BK) {
    load<BM>(As, A, row0, m, p0, k);
    load<BN>(Bs, B, col0, n, p0, k);
    __syncthreads();
#pragma unroll
    for (int q = 0; q < BK; ++q) {
      float a[TM], b[TN];
#pragma unroll
      for (int u = 0; u < TM; ++u) a[u] = As[x + u * X][q];
#pragma unroll
      for (int v = 0; v < TN; ++v) b[v] = Bs[y + v * Y][q];
#pragma unroll
      for (int v = 0; v < TN; ++v)
#pragma unroll
        for (int u = 0; u < TM; ++u) acc[v][u] += a[u] * b[v];
    }
    __syncthreads();
  }
#pragma unroll
  for (int v = 0; v < TN; ++v) {
#pragma unroll
    for (int u = 0; u < TM; ++u) {
      const int i = row0 + x + u * X, j = col0 + y + v * Y;
      if (i < m && j < n) C[i + j * size_t(m)] = acc[v][u];
    }
  }
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  const dim3 grid((m + BM - 1) / BM, (n + BN - 1) / BN);
  sgemm<<<grid, THREADS>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
