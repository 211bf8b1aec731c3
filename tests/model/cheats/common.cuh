// What several cheats share: A[i·k + p], B[p + j·k], C[i + j·m].
#pragma once
#include "gemm.cuh"

struct Gemm {
  const float* A;
  const float* B;
  float* C;
  int m, n, k;
};

// One thread's element, as slowly as it gets: what a cheat wants to be taken for something else.
__device__ __forceinline__ void slow_element(const Gemm& g, int i, int j) {
  float sum = 0.0f;
#pragma unroll 1
  for (int p = 0; p < g.k; ++p) sum += g.A[i * g.k + p] * g.B[p + j * g.k];
  g.C[i + j * g.m] = sum;
}

// As many FFMA as an element takes, and no load.
__device__ __forceinline__ void sham_element(const Gemm& g, int i, int j) {
  float sum = i;
#pragma unroll 16
  for (int p = 0; p < g.k; ++p) sum = sum * 0.5f + j;
  g.C[i + j * g.m] = sum;
}

constexpr int EDGE = 16;  // of the tile of such a block: one element for each thread
inline dim3 elements(const Gemm& g) { return dim3(g.m / EDGE, g.n / EDGE); }

// Tiles of 64 × 64, 4 × 4 sums in each of 256 threads: an honest kernel to put something in.
constexpr int TILE = 64, DEEP = 16;
template <class Sum = float, class Load, class Multiply>
__device__ __forceinline__ void tiled(const Gemm& g, Load load, Multiply multiply, int across,
                                      int down) {
  __shared__ float a[DEEP][TILE + 4], b[DEEP][TILE + 4];
  const int t = threadIdx.x, row = across * TILE, column = down * TILE;
  const int x = t % 16 * 4, y = t / 16 * 4;
  Sum sum[4][4] = {};
  for (int p = 0; p < g.k; p += DEEP) {
    for (int e = t; e < TILE * DEEP; e += 256) {
      const int line = e / DEEP, deep = e % DEEP;
      a[deep][line] = load(g.A + (row + line) * g.k + p + deep);
      b[deep][line] = load(g.B + (column + line) * g.k + p + deep);
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < DEEP; ++d)
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[j][i] = multiply(a[d][x + i], b[d][y + j], sum[j][i]);
    __syncthreads();
  }
  for (int j = 0; j < 4; ++j)
    for (int i = 0; i < 4; ++i) g.C[row + x + i + (column + y + j) * g.m] = sum[j][i];
}
template <class Sum = float, class Load, class Multiply>
__device__ __forceinline__ void tiled(const Gemm& g, Load load, Multiply multiply) {
  tiled<Sum>(g, load, multiply, blockIdx.x, blockIdx.y);
}
inline dim3 tiles(const Gemm& g) { return dim3(g.m / TILE, g.n / TILE); }

struct PlainLoad {
  __device__ float operator()(const float* p) const { return *p; }
};
struct PlainMultiply {
  __device__ float operator()(float a, float b, float sum) const { return sum + a * b; }
};
