// How C is divided: tiles for blocks of threads, 64 x 64 for a warp, 16 x 8 for a thread.
// The same file lies beside rungs 28 to 30 and 32.
#pragma once

constexpr int BM = 128;                  // rows of a tile
constexpr int TM = 16, TN = 8;           // of a thread: float4s 16 rows and 32 columns apart
constexpr int LANES_M = 4, LANES_N = 8;  // of a warp
constexpr int WM = TM * LANES_M, WN = TN * LANES_N, WARPS_M = BM / WM;

// What a block computes, and with how much shared memory.
template <int BN_, int BK_, int UNROLL_, int STAGES_>
struct Shape {
  static constexpr int BN = BN_, BK = BK_, STAGES = STAGES_;
  static constexpr int UNROLL = UNROLL_;  // how much of BK the body of the main loop holds
  static constexpr int WARPS = WARPS_M * (BN / WN), THREADS = 32 * WARPS;
  static constexpr int BLOCKS = WARPS <= 4 ? 2 : 1;  // of a multiprocessor
  static constexpr int A_STAGE = BK * BM, B_STAGE = BK * BN, STAGE = A_STAGE + B_STAGE;  // floats
  static constexpr int SHARED = STAGES * (STAGE * 4 + 16);
  // Stages being filled: with some to spare, no warp waits for the slowest one.
  static constexpr int AHEAD = STAGES > 3 ? STAGES - 2 : STAGES;
  static_assert(UNROLL % 2 == 0, "the two sets of fragments take turns");
  static_assert(UNROLL == BK || 2 * UNROLL == BK, "the body is all of it, or half");
};

struct Tile {
  int i, j;
};

// Tiles in bands of 11 tile rows: a wave of 264 blocks reads 11 + 24 panels.
__device__ __forceinline__ Tile tile_at(int index, int tiles_m, int tiles_n) {
  constexpr int BAND = 11;
  const int per = BAND * tiles_n, first = index / per * BAND, rows = min(BAND, tiles_m - first);
  return {first + index % per % rows, index % per / rows};
}

// Column j (of TN) of one thread's sums, to C.
template <class S, class Lanes>
__device__ __forceinline__ void store_column(float* C, const float (&column)[TM], Tile tile,
                                             int warp, int lane, int j, int m, int n) {
  const int row0 = tile.i * BM + warp % WARPS_M * WM + Lanes::row(lane) * 4;
  const int col = tile.j * S::BN + warp / WARPS_M * WN + Lanes::col(lane) * 4 +
                  j / 4 * (4 * LANES_N) + j % 4;
  if (col >= n) return;
#pragma unroll
  for (int i = 0; i < TM; i += 4) {
    const int row = row0 + i * LANES_M;
    float* to = C + row + size_t(col) * m;
    if (m % 4 == 0) {
      if (row < m)
        *reinterpret_cast<float4*>(to) =
            make_float4(column[i], column[i + 1], column[i + 2], column[i + 3]);
    } else {
#pragma unroll
      for (int x = 0; x < 4; ++x)
        if (row + x < m) to[x] = column[i + x];
    }
  }
}

inline int ceil_div(int a, int b) { return (a + b - 1) / b; }

inline int attribute(cudaDeviceAttr which) {
  int value = 0;
  cudaDeviceGetAttribute(&value, which, 0);
  return value;
}
