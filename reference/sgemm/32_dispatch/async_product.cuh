// The product by cp.async, with the tiles of the last wave summed in C in turns, as rung 31 does.
#pragma once

#include "async_ring.cuh"
#include "slices.cuh"

namespace async {

struct Work : direct::Work {
  int slices;  // of K, each to a product of its own; then nothing is shared
};

// A thread's sums go through shared memory, so that groups of warps can be added up and a warp
// stores neighbours in C, whatever m is.
template <class S>
__device__ __forceinline__ void keep_sums(float* smem, const float (&acc)[S::TM][S::TN]) {
  const int group = threadIdx.x / S::GROUP_THREADS, t = threadIdx.x % S::GROUP_THREADS;
  const int lane = t % 32, warp = t / 32;
  float* own = smem + group * S::SUMS + warp % S::WARPS_M * S::WM + Lanes<S>::row(lane) * 4 +
               (warp / S::WARPS_M * S::WN + Lanes<S>::col(lane) * 4) * S::A_PITCH;
  __syncthreads();  // nobody reads the ring any more
#pragma unroll
  for (int j = 0; j < S::TN; ++j)
#pragma unroll
    for (int i = 0; i < S::TM; i += 4)
      // Vector stores want aligned quads of registers; an addition keeps that out of the loop.
      *reinterpret_cast<float4*>(own + (j / 4 * (4 * S::LANES_N) + j % 4) * S::A_PITCH +
                                 i * S::LANES_M) =
          make_float4(acc[i][j] + 0.0f, acc[i + 1][j] + 0.0f, acc[i + 2][j] + 0.0f,
                      acc[i + 3][j] + 0.0f);
  __syncthreads();
}

// To C, or on top of what is there.
template <class S>
__device__ __forceinline__ void store_tile(const float* smem, float* C, direct::Tile tile, int m,
                                           int n, bool add) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int left = m - tile.i * S::BM, rows = (S::BM % 32 ? min(S::BM, left) : left) - lane;
  const int columns = min(S::BN, n - tile.j * S::BN);
  C += tile.i * S::BM + lane + size_t(tile.j) * S::BN * m;
#pragma unroll S::BLOCKS> 1 ? 2 : 4
  for (int c = warp; c < columns; c += S::WARPS) {
    float* to = C + size_t(c) * m;
    float sum[(S::BM + 31) / 32];
#pragma unroll
    for (int x = 0; x < S::BM; x += 32)  // not from an old L1
      sum[x / 32] = add && x < rows ? __ldcg(to + x) : 0.0f;
#pragma unroll
    for (int x = 0; x < S::BM; x += 32) {
#pragma unroll
      for (int g = 0; g < S::GROUPS; ++g)
        sum[x / 32] += smem[g * S::SUMS + c * S::A_PITCH + x + lane];
      if (x < rows) to[x] = sum[x / 32];
    }
  }
}

template <class S>
__global__ __launch_bounds__(S::THREADS, S::BLOCKS) void product(const float* A, const float* B,
                                                                 float* C, Work w) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  return;  // never launched there: the loop would not fit the registers
#endif
  extern __shared__ __align__(128) float smem[];
  let_next_launch_begin();
  Ring<S> ring(smem);
  const int tiles = w.tiles_m * w.tiles_n;
  const bool shares = int(blockIdx.x) >= w.whole;
  const int sharer = blockIdx.x - w.whole, slice = shares ? 0 : blockIdx.x / tiles;
  // K blocks, counted through the tiles that are shared.
  const int begin = shares ? direct::share_begin(sharer, w) : w.k_blocks * slice / w.slices;
  int end = shares ? direct::share_begin(sharer + 1, w) : w.k_blocks * (slice + 1) / w.slices;
  C += size_t(slice) * w.m * w.n;
  float acc[S::TM][S::TN];
  // The later tile first: no part comes before this one, and the next sharer waits for it.
  while (end > begin) {
    const int own = (end - 1) / w.k_blocks, k0 = max(begin - own * w.k_blocks, 0);
    const int count = end - own * w.k_blocks - k0;
    const direct::Tile tile =
        direct::tile_at(shares ? w.whole + own : int(blockIdx.x) % tiles, w.tiles_m, w.tiles_n);
    // Where k is no multiple of BK, the first K block begins before the lines.
    Loader<S> loader(A, B, tile.i * S::BM, tile.j * S::BN, w.m, w.n, w.k,
                     w.k - (w.k_blocks - k0) * S::BK, ring.base);
    ring.multiply(loader, count, acc);
    keep_sums<S>(smem, acc);
    const bool partly = shares && count < w.k_blocks;
    if (partly) direct::wait_for_turn(own, k0);
    store_tile<S>(smem, C, tile, w.m, w.n, shares && k0 > 0);
    if (partly) direct::pass_turn_on(own, k0 + count < w.k_blocks ? k0 + count : 0);
    end -= count;
  }
}

template <class S>
void launch(const float* A, const float* B, float* C, int m, int n, int k, int slices, int whole,
            int sharers) {
  Work w = {direct::work<S>(m, n, k), slices};
  w.whole = whole * slices, w.sharers = sharers;
  const size_t count = size_t(m) * n;
  float* to = slices > 1 ? workspace(count * slices) : C;
  cudaFuncSetAttribute(product<S>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::SHARED);
  product<S><<<w.whole + sharers, S::THREADS, S::SHARED>>>(A, B, to, w);
  if (slices > 1) add_up(to, C, count, slices);
}

}  // namespace async
