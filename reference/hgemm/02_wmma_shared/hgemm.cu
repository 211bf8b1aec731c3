// Rung 2: wmma with tiles in shared memory.
//
// Changed:  a block brings tiles of A and B into shared memory, 16 bytes a thread at a time, and
//           eight warps take their fragments from there. A warp makes 64 x 32 of C: four fragments
//           of A and two of B serve eight products.
// Why:      an element that came from memory once serves 128 rows or columns instead of 16, and a
//           fragment two or four products instead of one.
// Tile:     BM = BN = 128, BK = 32, warp 64 x 32, 24 KiB of shared memory, 256 threads.
// Bound:    waiting: nothing is multiplied while tiles come, and the loads of fragments conflict.
// Source:   NVIDIA's sample cudaTensorCoreGemm, compute_gemm.
// Command:  grade reference/hgemm/02_wmma_shared --lab hgemm
#include <mma.h>

#include "gemm.cuh"

using namespace nvcuda;

constexpr int BM = 128, BN = 128, BK = 32, WM = 64, WN = 32, TILE = 16;
constexpr int WARPS = BM / WM * (BN / WN), THREADS = 32 * WARPS;
constexpr int CHUNK = 8, CHUNKS = BK / CHUNK;  // halves in 16 bytes; so many make a line of a tile
constexpr int FRAGS_M = WM / TILE, FRAGS_N = WN / TILE;
static_assert(BM == BN, "both tiles are loaded in the same way");

using RowsOfA = wmma::fragment<wmma::matrix_a, TILE, TILE, TILE, __half, wmma::row_major>;
using ColumnsOfB = wmma::fragment<wmma::matrix_b, TILE, TILE, TILE, __half, wmma::col_major>;
using Sums = wmma::fragment<wmma::accumulator, TILE, TILE, TILE, float>;

// Eight halves along K, of which `inside` exist, as 16 bytes.
template <bool ALIGNED>
__device__ int4 chunk_at(const __half* from, int inside) {
  if constexpr (ALIGNED) {
    return inside > 0 ? *reinterpret_cast<const int4*>(from) : make_int4(0, 0, 0, 0);
  } else {
    __align__(16) __half values[CHUNK];
#pragma unroll
    for (int u = 0; u < CHUNK; ++u) values[u] = u < inside ? from[u] : __float2half(0.0f);
    return *reinterpret_cast<const int4*>(values);
  }
}

// Lines past the edge become the last one, whose products nobody stores.
template <bool ALIGNED>
__device__ void load_tile(__half* tile, const __half* matrix, int first, int lines, int p0, int k) {
#pragma unroll
  for (int at = 0; at < BM * CHUNKS; at += THREADS) {
    const int line = (at + threadIdx.x) / CHUNKS, p = threadIdx.x % CHUNKS * CHUNK;
    const __half* from = matrix + min(first + line, lines - 1) * size_t(k) + p0 + p;
    *reinterpret_cast<int4*>(tile + line * BK + p) = chunk_at<ALIGNED>(from, k - p0 - p);
  }
}

// ALIGNED: k is a multiple of 8, so that every line begins at a multiple of 16 bytes.
template <bool ALIGNED>
__global__ void __launch_bounds__(THREADS)
    hgemm(const __half* A, const __half* B, __half* C, int m, int n, int k) {
  __shared__ __align__(32) __half As[BM * BK], Bs[BN * BK];
  __shared__ __align__(32) float results[WARPS][TILE * TILE];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int tile_row = blockIdx.x * BM, tile_col = blockIdx.y * BN;
  const int warp_row = warp % (BM / WM) * WM, warp_col = warp / (BM / WM) * WN;

  Sums sums[FRAGS_M][FRAGS_N];
#pragma unroll
  for (int u = 0; u < FRAGS_M; ++u)
#pragma unroll
    for (int v = 0; v < FRAGS_N; ++v) wmma::fill_fragment(sums[u][v], 0.0f);
  for (int p0 = 0; p0 < k; p0 += BK) {
    load_tile<ALIGNED>(As, A, tile_row, m, p0, k);
    load_tile<ALIGNED>(Bs, B, tile_col, n, p0, k);
    __syncthreads();
#pragma unroll
    for (int p = 0; p < BK; p += TILE) {
      RowsOfA a[FRAGS_M];
      ColumnsOfB b[FRAGS_N];
#pragma unroll
      for (int u = 0; u < FRAGS_M; ++u)
        wmma::load_matrix_sync(a[u], As + (warp_row + u * TILE) * BK + p, BK);
#pragma unroll
      for (int v = 0; v < FRAGS_N; ++v)
        wmma::load_matrix_sync(b[v], Bs + (warp_col + v * TILE) * BK + p, BK);
#pragma unroll
      for (int u = 0; u < FRAGS_M; ++u)
#pragma unroll
        for (int v = 0; v < FRAGS_N; ++v) wmma::mma_sync(sums[u][v], a[u], b[v], sums[u][v]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int u = 0; u < FRAGS_M; ++u)
#pragma unroll
    for (int v = 0; v < FRAGS_N; ++v) {
      wmma::store_matrix_sync(results[warp], sums[u][v], TILE, wmma::mem_col_major);
      __syncwarp();
      for (int at = lane; at < TILE * TILE; at += 32) {
        const int i = tile_row + warp_row + u * TILE + at % TILE;
        const int j = tile_col + warp_col + v * TILE + at / TILE;
        if (i < m && j < n) C[i + j * size_t(m)] = __float2half(results[warp][at]);
      }
      __syncwarp();
    }
}

template <>
void run_custom<__half>(thrust::device_vector<__half>& d_A, thrust::device_vector<__half>& d_B,
                        thrust::device_vector<__half>& d_C, const int m, const int n,
                        const int k) {
  const dim3 grid((m + BM - 1) / BM, (n + BN - 1) / BN);
  const auto kernel = k % CHUNK == 0 ? hgemm<true> : hgemm<false>;
  kernel<<<grid, THREADS>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
