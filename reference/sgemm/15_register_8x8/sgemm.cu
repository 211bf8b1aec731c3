// Rung 15: a thread tile of 8 x 8 elements, and rectangular tiles of A and B.
//
// Changed:  TM = TN = 8. The tile of C grows to 128 x 128; the tiles of A and B become rectangular,
//           128 lines of only 8 along K, so that they take less shared memory than before.
// Why:      16 values feed 64 FMAs: a quarter of a shared load for each FMA, half of rung 13, and
//           half of its global traffic. The depth BK adds no reuse, only fewer barriers, so
//           it can be small. The price is 64 accumulators in registers; the launch bound
//           keeps two blocks on a multiprocessor, so that one computes while the other loads.
// Tile:     BM = BN = 128, BK = 8, TM = TN = 8, 9 KiB of shared memory, 256 threads.
// Bound:    shared loads: 0.25 for each FMA, as many cycles as the FMAs themselves (a
//           multiprocessor does four warps' FMAs per clock, but one shared load).
// Command:  grade reference/sgemm/15_register_8x8
#include "gemm.cuh"

constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8;
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

__global__ void __launch_bounds__(THREADS, 2)
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
