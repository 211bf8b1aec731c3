// Rung 5 (a trap): 32 x 32 tiles of A and B in shared memory, in a layout that conflicts.
//
// Changed:  a block loads a tile of A and of B into shared memory along K (coalesced), then every
//           thread computes its dot product from there.
// Why:      each element loaded from global memory serves 32 threads. But As[x][q] is read with
//           x across the lanes: 32 floats apart, all in one bank.
// Tile:     BM = BN = BK = 32, TM = TN = 1, 8 KiB of shared memory.
// Bound:    shared memory: 32 wavefronts for each warp's load of As, where 1 would do.
// Command:  grade reference/sgemm/05_tile32_conflicts
#include "gemm.cuh"

constexpr int T = 32;

__global__ void sgemm(const float* A, const float* B, float* C, int m, int n, int k) {
  __shared__ float As[T][T], Bs[T][T];  // [row of A or column of B][p]
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
