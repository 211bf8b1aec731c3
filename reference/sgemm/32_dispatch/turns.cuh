// The product, with the tiles of the last wave shared along K and summed in C, part by part.
// The same file lies beside rungs 31 and 32.
#pragma once

#include "product.cuh"

namespace direct {

constexpr int MOST_SHARED = 1024;  // tiles
__device__ int summed[MOST_SHARED];  // K blocks of each shared tile that C holds; 0 between calls

// Waits until C holds the sum of the first k0 K blocks of a shared tile.
__device__ __forceinline__ void wait_for_turn(int tile, int k0) {
  if (k0 > 0 && threadIdx.x == 0)
    while (*static_cast<volatile int*>(&summed[tile]) != k0) {
    }
  __threadfence();
  __syncthreads();
}

__device__ __forceinline__ void pass_turn_on(int tile, int k_blocks) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) *static_cast<volatile int*>(&summed[tile]) = k_blocks;
}

template <class S>
__global__ __launch_bounds__(S::THREADS, S::BLOCKS) void sgemm(const float* A, const float* B,
                                                               float* C, Work w) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  if (S::TM == 16) return;  // never launched there: the loop would not fit the registers
#endif
  extern __shared__ __align__(128) float smem[];
  Ring<S> ring(smem);
  const bool shares = int(blockIdx.x) >= w.whole;
  const int sharer = blockIdx.x - w.whole;
  const int begin = shares ? share_begin(sharer, w) : 0;
  float acc[S::TM][S::TN];
  // The later tile first: no part comes before this one, and the next sharer waits for it.
  for (int end = shares ? share_begin(sharer + 1, w) : w.k_blocks; end > begin;) {
    const int own = (end - 1) / w.k_blocks, k0 = max(begin - own * w.k_blocks, 0);
    const int count = end - own * w.k_blocks - k0;
    const Tile tile =
        tile_at(shares ? w.whole + own : int(blockIdx.x), w.tiles_m, w.tiles_n);
    Loader<S> loader(A, B, tile.i * S::BM, tile.j * S::BN, w.m, w.n, w.k, k0 * S::BK,
                             ring.base);
    ring.multiply(loader, count, acc);
    const bool partly = count < w.k_blocks;
    if (partly) wait_for_turn(own, k0);
    each_sum<S>(smem, acc, [&](int unit, float4 sum) {
      store<S>(C, sum, tile, threadIdx.x % S::GROUP_THREADS, unit, w.m, w.n, k0 > 0);
    });
    if (partly) pass_turn_on(own, k0 + count < w.k_blocks ? k0 + count : 0);
    end -= count;
  }
}

}  // namespace direct
