// One block's share of C: which tile, which part of K, and where its sums go.
// The same file lies beside rungs 31 and 32.
#pragma once

#include "ring.cuh"

namespace direct {

struct Tile {
  int i, j;
};

struct Work {
  int m, n, k, k_blocks, tiles_m, tiles_n;
  int whole;    // the first `whole` tiles are a block each; the others are shared out
  int sharers;  // among so many blocks, in equal runs of K blocks
};

inline int ceil_div(int a, int b) { return (a + b - 1) / b; }

template <class S>
Work work(int m, int n, int k) {
  Work w = {m, n, k, ceil_div(k, S::BK), ceil_div(m, S::BM), ceil_div(n, S::BN), 0, 0};
  w.whole = w.tiles_m * w.tiles_n;
  return w;
}

// Tiles in bands of 16 tile rows.
__device__ __forceinline__ Tile tile_at(int index, int tiles_m, int tiles_n) {
  constexpr int BAND = 16;
  const int per = BAND * tiles_n, first = index / per * BAND, rows = min(BAND, tiles_m - first);
  return {first + index % per % rows, index % per / rows};
}

// The first K block, counted through all shared tiles, of one sharer.
__device__ __forceinline__ int share_begin(int sharer, const Work& w) {
  const long long all = (long long)(w.tiles_m * w.tiles_n - w.whole) * w.k_blocks;
  return int(all * sharer / w.sharers);
}

// Four sums of one column, to C or on top of what is there.
template <class S>
__device__ __forceinline__ void store(float* C, float4 v, Tile tile, int thread, int unit, int m,
                                      int n, bool add) {
  const int lane = thread % 32, warp = thread / 32;
  const int i = unit % (S::TM / 4) * 4, j = unit / (S::TM / 4);
  const int row = tile.i * S::BM + warp % S::WARPS_M * S::WM + Lanes::row(lane) * 4 + i * LANES_M;
  const int col = tile.j * S::BN + warp / S::WARPS_M * S::WN + Lanes::col(lane) * 4 +
                  j / 4 * (4 * LANES_N) + j % 4;
  if (col >= n || row >= m) return;
  float* to = C + row + size_t(col) * m;
  if (m % 4 == 0) {
    if (add) {
      const float4 old = __ldcg(reinterpret_cast<const float4*>(to));  // not from an old L1
      v.x += old.x, v.y += old.y, v.z += old.z, v.w += old.w;
    }
    *reinterpret_cast<float4*>(to) = v;
  } else {
    const float x[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if (row + e < m) to[e] = add ? __ldcg(to + e) + x[e] : x[e];
  }
}

// Calls each(unit, sum) with every float4 of this thread's sums, of which there are TM / 4 a
// column; with groups of warps, of those that it adds up.
template <class S, class Each>
__device__ __forceinline__ void each_sum(float* smem, const float (&acc)[S::TM][S::TN],
                                         Each each) {
  // Vector stores want aligned quads of registers; an addition keeps that out of the loop.
  auto own = [&](int u) {
    const int i = u % (S::TM / 4) * 4, j = u / (S::TM / 4);
    return make_float4(acc[i][j] + 0.0f, acc[i + 1][j] + 0.0f, acc[i + 2][j] + 0.0f,
                       acc[i + 3][j] + 0.0f);
  };
  if constexpr (S::GROUPS == 1) {
#pragma unroll
    for (int u = 0; u < S::UNITS; ++u) each(u, own(u));
  } else {
    const int group = threadIdx.x / S::GROUP_THREADS, t = threadIdx.x % S::GROUP_THREADS;
    float4* sums = reinterpret_cast<float4*>(smem);
    __syncthreads();
#pragma unroll
    for (int u = 0; u < S::UNITS; ++u)
      if (u % S::GROUPS != group)
        sums[((group - (group > u % S::GROUPS)) * S::UNITS + u) * S::GROUP_THREADS + t] = own(u);
    __syncthreads();
#pragma unroll
    for (int u = 0; u < S::UNITS; ++u)
      if (u % S::GROUPS == group) {
        float4 v = own(u);
#pragma unroll
        for (int slot = 0; slot < S::GROUPS - 1; ++slot) {
          const float4 x = sums[(slot * S::UNITS + u) * S::GROUP_THREADS + t];
          v.x += x.x, v.y += x.y, v.z += x.z, v.w += x.w;
        }
        each(u, v);
      }
    __syncthreads();
  }
}

}  // namespace direct
