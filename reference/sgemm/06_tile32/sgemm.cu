// Rung 6: the same tiles without bank conflicts.
//
// Changed:  each row of a tile is one float longer (33), so As[x][q] over the lanes x visits
//           32 different banks.
// Why:      a load of As takes 1 wavefront instead of 32. Bs[y][q] is a broadcast, as before.
// Tile:     BM = BN = BK = 32, TM = TN = 1, 8.25 KiB of shared memory.
// Bound:    shared loads: still two of them for each FMA.
// Command:  grade reference/sgemm/06_tile32
#include "gemm.cuh"

constexpr int T = 32;

__global__ void sgemm(const float* A, const float* B, float* C, int m, int n, int k) {
  __shared__ float As[T][T + 1], Bs[T][T + 1];  // [row of A or column of B][p]
  const int x = threadIdx.x, y = threadIdx.y;
  const int row0 = blockIdx.x * T, col0 = blockIdx.y * T;
  const int i = row0 + x, j = col0 + y;  // the element of C

  float sum = 0.0f;
  for (int p0 = 0; p0 < k; p0 += T) {
    const int p = p0 + x;  // while loading, x runs along K
    As[y][x] = row0 + y < m && p < k ? A[(row0 + y) * size_t(k) + p] : 0.0f;
    Bs[y][x] = col0 + y < n && p < k ? B[p + (col0 + y) * size_t(k)] : 0.0f;
    __syncthreads();
#pragma unroll 1
    for (int q = 0; q < T; ++q) sum += As[x][q] * Bs[y][q];
    __syncthreads();
  }
  if (i < m && j < n) C[i + j * size_t(m)] = sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  const dim3 grid((m + T - 1) / T, (n + T - 1) / T);
  sgemm<<<grid, dim3(T, T)>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
