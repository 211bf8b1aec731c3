// Rung 13: a thread tile of 4 x 4 elements, 16 apart.
//
// Changed:  16 x 16 threads make a 64 x 64 tile; a thread owns four rows and four columns,
//           and keeps its 16 sums in registers. Edges are predicated again, without a workspace.
// Why:      four values of A and four of B feed 16 FMAs: half a shared load for each FMA, where
//           1 x 8 (rungs 11 and 12) needs 1.125. A tile of TM x TN needs (TM + TN) / (TM * TN):
//           reuse grows with its sides. The larger tile also halves the traffic from global memory.
// Tile:     BM = BN = 64, BK = 32, TM = TN = 4, 16.5 KiB of shared memory, 256 threads.
// Bound:    shared loads: 0.5 for each FMA.
// Command:  grade reference/sgemm/13_register_4x4
#include "gemm.cuh"

constexpr int BM = 64, BN = 64, BK = 32, TM = 4, TN = 4;
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
