// Rung 1: tensor cores through wmma, straight from global memory.
//
// Changed:  a warp makes a tile of 16 x 16 of C by wmma::mma_sync; its fragments come straight from
//           A and B. Where a fragment crosses an edge, or k is no multiple of 8 and rows are not
//           aligned, the warp first copies it into shared memory, with zeros outside.
// Why:      one instruction does 4096 multiply-adds with FP32 sums, where the 32 lanes of an FFMA
//           do 32.
// Tile:     16 x 16 for a warp, 64 x 32 for a block, 256 threads.
// Bound:    L1 and L2: every product of two fragments loads both of them again.
// Source:   CUDA C++ Programming Guide, "Warp Matrix Functions"; NVIDIA's sample
//           cudaTensorCoreGemm, simple_wmma_gemm.
// Command:  grade reference/hgemm/01_wmma_global --lab hgemm
#include <mma.h>

#include "gemm.cuh"

using namespace nvcuda;

constexpr int TILE = 16, ROWS = 4, COLUMNS = 2;  // warps of a block along the rows of C, and across
constexpr int WARPS = ROWS * COLUMNS, THREADS = 32 * WARPS, SIZE = TILE * TILE;

using RowsOfA = wmma::fragment<wmma::matrix_a, TILE, TILE, TILE, __half, wmma::row_major>;
using ColumnsOfB = wmma::fragment<wmma::matrix_b, TILE, TILE, TILE, __half, wmma::col_major>;
using Sums = wmma::fragment<wmma::accumulator, TILE, TILE, TILE, float>;

// A tile whose lines run along K, from line `first` and place p0 on.
template <typename Fragment>
__device__ void load_fragment(Fragment& fragment, __half* patch, const __half* matrix, int first,
                              int lines, int p0, int k) {
  const __half* corner = matrix + first * size_t(k) + p0;
  if (k % 8 == 0 && first + TILE <= lines && p0 + TILE <= k) {
    wmma::load_matrix_sync(fragment, corner, k);
    return;
  }
  __syncwarp();  // nobody reads the last patch any more
  for (int at = threadIdx.x % 32; at < SIZE; at += 32) {
    const int line = at / TILE, p = at % TILE;
    const bool inside = first + line < lines && p0 + p < k;
    patch[at] = inside ? corner[line * size_t(k) + p] : __float2half(0.0f);
  }
  __syncwarp();
  wmma::load_matrix_sync(fragment, patch, TILE);
}

__global__ void __launch_bounds__(THREADS)
    hgemm(const __half* A, const __half* B, __half* C, int m, int n, int k) {
  __shared__ __align__(32) __half patches[WARPS][2][SIZE];
  __shared__ __align__(32) float results[WARPS][SIZE];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = (blockIdx.x * ROWS + warp % ROWS) * TILE;
  const int column = (blockIdx.y * COLUMNS + warp / ROWS) * TILE;
  if (row >= m || column >= n) return;

  RowsOfA a;
  ColumnsOfB b;
  Sums sums;
  wmma::fill_fragment(sums, 0.0f);
  for (int p0 = 0; p0 < k; p0 += TILE) {
    load_fragment(a, patches[warp][0], A, row, m, p0, k);
    load_fragment(b, patches[warp][1], B, column, n, p0, k);
    wmma::mma_sync(sums, a, b, sums);
  }
  // Which lane holds which element of a fragment is not said, so it passes through memory.
  wmma::store_matrix_sync(results[warp], sums, TILE, wmma::mem_col_major);
  __syncwarp();
  for (int at = lane; at < SIZE; at += 32) {
    const int i = row + at % TILE, j = column + at / TILE;
    if (i < m && j < n) C[i + j * size_t(m)] = __float2half(results[warp][at]);
  }
}

template <>
void run_custom<__half>(thrust::device_vector<__half>& d_A, thrust::device_vector<__half>& d_B,
                        thrust::device_vector<__half>& d_C, const int m, const int n,
                        const int k) {
  constexpr int BM = ROWS * TILE, BN = COLUMNS * TILE;
  const dim3 grid((m + BM - 1) / BM, (n + BN - 1) / BN);
  hgemm<<<grid, THREADS>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
