// Rung 30's kernel, and stores by whole warps where m is no multiple of four.
#pragma once

#include "overlap.cuh"
#include "pack.cuh"
#include "pipeline.cuh"
#include "reuse_order.cuh"
#include "workspace.cuh"

struct Work {
  int m, n, k_blocks, tiles_m, tiles_n;
  int whole;    // the first `whole` tiles are a block each; the others are shared out
  int sharers;  // among so many blocks, in equal runs of K blocks
};

// The first K block, counted through all shared tiles, of one sharer.
__device__ __forceinline__ int share_begin(int sharer, const Work& w) {
  const long long all = (long long)(w.tiles_m * w.tiles_n - w.whole) * w.k_blocks;
  return int(all * sharer / w.sharers);
}

// A function, so that ptxas makes the code that was timed: it renames two registers otherwise.
__device__ __forceinline__ void advance(int& at, int count) { at += count; }

// Rung 29's pack, beside whose end the product begins.
template <int PANEL_A, int PANEL_B>
__global__ __launch_bounds__(PACK_THREADS) void pack_ahead(const float* A, const float* B,
                                                           float* packed_a, float* packed_b,
                                                           int panels_a, int m, int n, int k,
                                                           int padded) {
  __shared__ float tile[PACK_K][BM + 1];  // odd: the transposing stores do not collide
  const int panel = blockIdx.y;
  let_next_launch_begin();
  if (panel < panels_a) pack_panel<PANEL_A>(A, packed_a, panel, m, k, padded, 1, tile);
  else pack_panel<PANEL_B>(B, packed_b, panel - panels_a, n, k, padded, 0, tile);
}

// Four sums of one column. Vector stores want aligned quads of registers; an addition keeps that
// out of the main loop.
__device__ __forceinline__ float4 quad(const float (&acc)[TM][TN], int i, int j) {
  return make_float4(acc[i][j] + 0.0f, acc[i + 1][j] + 0.0f, acc[i + 2][j] + 0.0f,
                     acc[i + 3][j] + 0.0f);
}

// Where m % 4 is not 0: a warp's sums go through shared memory, so that it stores neighbours in C.
template <class S>
__device__ __forceinline__ void store_neighbours(float* smem, float* C, const float (&acc)[TM][TN],
                                                 Tile tile, int warp, int lane, int m, int n) {
  constexpr int PITCH = WM + 4;  // the quads of eight lanes lie in different banks
  static_assert(S::WARPS * WN * PITCH <= S::STAGES * S::STAGE, "it fits");
  float* own = smem + warp * WN * PITCH;
  __syncthreads();  // nobody reads the ring any more
#pragma unroll
  for (int j = 0; j < TN; ++j) {
    float* column =
        own + (Lanes::col(lane) * 4 + j / 4 * (4 * LANES_N) + j % 4) * PITCH + Lanes::row(lane) * 4;
#pragma unroll
    for (int i = 0; i < TM; i += 4)
      *reinterpret_cast<float4*>(column + i * LANES_M) = quad(acc, i, j);
  }
  __syncwarp();
  const int row = tile.i * BM + warp % WARPS_M * WM + lane;
  const int col0 = tile.j * S::BN + warp / WARPS_M * WN, columns = min(WN, n - col0);
  float* to = C + row + size_t(col0) * m;
#pragma unroll 4
  for (int c = 0; c < columns; ++c, to += m)
#pragma unroll
    for (int x = 0; x < WM; x += 32)
      if (row + x < m) to[x] = own[c * PITCH + lane + x];
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // bulk copies may come next
#endif
}

template <class S>
__global__ __launch_bounds__(S::THREADS, S::BLOCKS) void large(const float* A, const float* B,
                                                               float* C, float* partial, Work w) {
  extern __shared__ __align__(128) float smem[];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  uint32_t base = shared_address(smem);
  uint32_t a_base = base + 4 * (warp % WARPS_M * WM + Lanes::row(lane) * 4);
  uint32_t b_base = base + 4 * (S::A_STAGE + warp / WARPS_M * WN + Lanes::col(lane) * 4);
  asm volatile("" : "+r"(base), "+r"(a_base), "+r"(b_base));

  // The K blocks of this block of threads, counted through its tiles.
  const bool shares = int(blockIdx.x) >= w.whole;
  const int sharer = blockIdx.x - w.whole;
  const int begin = shares ? share_begin(sharer, w) : 0;
  const int end = shares ? share_begin(sharer + 1, w) : w.k_blocks;

  PipelineState state;
  Pipeline<S> pipeline(smem, base, a_base, b_base);
  pipeline.init();
  let_next_launch_begin();
  wait_for_launches_before();
  float acc[TM][TN];
  int at = begin;
  while (at < end) {
    const int index = shares ? w.whole + at / w.k_blocks : int(blockIdx.x);
    const int k0 = at % w.k_blocks, count = min(end - at, w.k_blocks - k0);
    const Tile tile = tile_at(index, w.tiles_m, w.tiles_n);
    pipeline.multiply(A + (size_t(tile.i) * w.k_blocks + k0) * S::A_STAGE,
                      B + (size_t(tile.j) * w.k_blocks + k0) * S::B_STAGE, count, acc, state,
                      ReuseOrder());

    if (count == w.k_blocks && w.m % 4 != 0) {
      store_neighbours<S>(smem, C, acc, tile, warp, lane, w.m, w.n);
    } else if (count == w.k_blocks) {
#pragma unroll
      for (int j = 0; j < TN; ++j) {
        float column[TM];
#pragma unroll
        for (int i = 0; i < TM; ++i) column[i] = acc[i][j] + 0.0f;
        store_column<S, Lanes>(C, column, tile, warp, lane, j, w.m, w.n);
      }
    } else {
      // A sharer leaves at most two parts of tiles: of its first and of its last one.
      float* to = partial + size_t(2 * sharer + (at != begin)) * (BM * S::BN);
#pragma unroll
      for (int j = 0; j < TN; ++j)
#pragma unroll
        for (int i = 0; i < TM; i += 4)
          *reinterpret_cast<float4*>(to + (j * TM + i) * S::THREADS + t * 4) = quad(acc, i, j);
    }
    advance(at, count);
  }
}

// Adds the parts of the shared tiles, always in the order of K. Block (tile, j).
template <class S>
__global__ __launch_bounds__(S::THREADS) void add_parts(const float* partial, float* C, Work w) {
  wait_for_launches_before();
  const int from = blockIdx.x * w.k_blocks, to = from + w.k_blocks, j = blockIdx.y;
  const long long all = (long long)(w.tiles_m * w.tiles_n - w.whole) * w.k_blocks;
  int sharer = int((long long)from * w.sharers / all);
  while (share_begin(sharer + 1, w) <= from) ++sharer;
  float column[TM] = {};
  for (; sharer < w.sharers && share_begin(sharer, w) < to; ++sharer) {
    const int begin = share_begin(sharer, w), end = share_begin(sharer + 1, w);
    if (begin == end) continue;
    if (begin <= from && end >= to) return;  // one sharer had the whole tile
    const float* part = partial + size_t(2 * sharer + (begin < from)) * (BM * S::BN);
#pragma unroll
    for (int i = 0; i < TM; i += 4) {
      const float4 v =
          *reinterpret_cast<const float4*>(part + (j * TM + i) * S::THREADS + threadIdx.x * 4);
      column[i] += v.x, column[i + 1] += v.y, column[i + 2] += v.z, column[i + 3] += v.w;
    }
  }
  const Tile tile = tile_at(w.whole + blockIdx.x, w.tiles_m, w.tiles_n);
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  store_column<S, Lanes>(C, column, tile, warp, lane, j, w.m, w.n);
}

template <class S>
void launch_large(const float* A, const float* B, float* C, int m, int n, int k, int sms) {
  const int padded = ceil_div(k, S::BK) * S::BK, slots = S::BLOCKS * sms;
  Work w = {m, n, padded / S::BK, ceil_div(m, BM), ceil_div(n, S::BN), 0, 0};
  const int tiles = w.tiles_m * w.tiles_n, left = tiles % slots;
  // The last, partial wave is shared out where that saves more than the parts cost.
  const bool share = left > 0 && (long long)(slots - left) * k > 256LL * slots;
  w.whole = share ? tiles - left : tiles;
  w.sharers = share ? min(slots, left * w.k_blocks) : 0;

  const size_t a_floats = size_t(w.tiles_m) * BM * padded;
  const size_t b_floats = size_t(w.tiles_n) * S::BN * padded;
  const size_t part_floats = size_t(2 * w.sharers) * BM * S::BN;
  float* packed_a = workspace(a_floats + b_floats + part_floats);
  float *packed_b = packed_a + a_floats, *partial = packed_b + b_floats;

  const dim3 panels(ceil_div(padded, PACK_K), w.tiles_m + w.tiles_n);
  pack_ahead<BM, S::BN><<<panels, PACK_THREADS>>>(A, B, packed_a, packed_b, w.tiles_m, m, n, k,
                                                  padded);
  cudaFuncSetAttribute(large<S>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::SHARED);
  launch_early(large<S>, w.whole + w.sharers, S::THREADS, S::SHARED, packed_a, packed_b, C, partial,
               w);
  if (share) launch_early(add_parts<S>, dim3(left, TN), S::THREADS, 0, partial, C, w);
}
