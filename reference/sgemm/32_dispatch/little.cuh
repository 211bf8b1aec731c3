// Little K: the lines of a tile come to shared memory whole, and a warp stores 32 neighbours in C.
#pragma once

#include "small.cuh"

// A warp has 32 * ROWS rows and 64 / ROWS columns of C, a lane every 32nd of the rows.
template <int ROWS, int WARPS_N>
struct Little {
  static constexpr int WARPS = 4, THREADS = 32 * WARPS, COLS = 64 / ROWS;
  static constexpr int BM = 32 * ROWS * (WARPS / WARPS_N), BN = COLS * WARPS_N;
  static constexpr int A_PITCH = BM + 1, B_PITCH = BN + 4;  // transposed; B is read in quads
};

// Whole lines lie side by side, so neighbours copy neighbours whatever k is. Lines beyond the edge
// are zero.
template <int LINES, int PITCH, int THREADS>
__device__ __forceinline__ void copy_lines(uint32_t to, const float* from, int lines, int k) {
  const int line_step = THREADS / k, p_step = THREADS - line_step * k;
  int line = threadIdx.x / k, p = threadIdx.x - line * k;
#pragma unroll 4
  for (int x = threadIdx.x; x < LINES * k; x += THREADS) {
    const bool is_there = line < lines;
    copy_async<4>(to + 4 * (p * PITCH + line),
                  reinterpret_cast<const char*>(is_there ? from + x : from), is_there ? 4 : 0);
    line += line_step, p += p_step;
    if (p >= k) p -= k, ++line;
  }
}

template <int ROWS, int WARPS_N>
__global__ __launch_bounds__(Little<ROWS, WARPS_N>::THREADS,
                            BLOCKS_HERE(4))
void little(const float* A, const float* B, float* C, int m, int n, int k) {
  using S = Little<ROWS, WARPS_N>;
  extern __shared__ __align__(128) float smem[];
  const int row0 = blockIdx.x * S::BM, col0 = blockIdx.y * S::BN;
  float* b_lines = smem;
  float* a_lines = smem + k * S::B_PITCH;
  copy_lines<S::BN, S::B_PITCH, S::THREADS>(shared_address(b_lines), B + size_t(col0) * k,
                                            n - col0, k);
  copy_lines<S::BM, S::A_PITCH, S::THREADS>(shared_address(a_lines), A + size_t(row0) * k,
                                            m - row0, k);
  const int warp = threadIdx.x / 32;
  const int row = warp / WARPS_N * 32 * ROWS + threadIdx.x % 32, col = warp % WARPS_N * S::COLS;
  const float *a = a_lines + row, *b = b_lines + col;
  float acc[S::COLS][ROWS] = {};
  commit_group();
  wait_group<0>();
  __syncthreads();
#pragma unroll 2
  for (int p = 0; p < k; ++p, a += S::A_PITCH, b += S::B_PITCH) {
    float own[ROWS], all[S::COLS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) own[i] = a[32 * i];
#pragma unroll
    for (int j = 0; j < S::COLS; j += 4) load_shared(&all[j], b + j);
#pragma unroll
    for (int j = 0; j < S::COLS; ++j)
#pragma unroll
      for (int i = 0; i < ROWS; ++i) acc[j][i] += own[i] * all[j];
  }
  const int first = row0 + row, columns = n - col0 - col;
  float* to = C + size_t(col0 + col) * m + first;
#pragma unroll
  for (int j = 0; j < S::COLS; ++j, to += m)
    if (j < columns) {
#pragma unroll
      for (int i = 0; i < ROWS; ++i)
        if (first + 32 * i < m) to[32 * i] = acc[j][i];
    }
}

template <int ROWS, int WARPS_N>
void launch_little(const float* A, const float* B, float* C, int m, int n, int k) {
  using S = Little<ROWS, WARPS_N>;
  const int shared = 4 * k * (S::A_PITCH + S::B_PITCH);
  cudaFuncSetAttribute(little<ROWS, WARPS_N>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
  little<ROWS, WARPS_N><<<dim3(ceil_div(m, S::BM), ceil_div(n, S::BN)), S::THREADS, shared>>>(
      A, B, C, m, n, k);
}
