// The product on FP32 units, for what is too small for tensor cores: reference/sgemm, rung 25.
#pragma once

#include <cmath>

#include "workspace.cuh"

namespace fp32 {

constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, STAGES = 4;
constexpr int BAND = 16;         // columns of tiles
constexpr int WM = 64, WN = 32;  // the warp tile
constexpr int THREADS = BM / TM * (BN / TN);
constexpr int PITCH = BM + 4;                                   // of a row of a tile
constexpr int STEP = THREADS / BK, COPIES = BM * BK / THREADS;  // lines between a thread's copies
constexpr int BLOCKS = 2;                                       // at once on a multiprocessor
static_assert(BM == BN && COPIES * STEP == BM, "both tiles are loaded in the same way");

// *to = *from, or zero; under way until waited for.
__device__ void cp_async(float* to, const float* from, bool inside) {
  const unsigned address = __cvta_generic_to_shared(to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from),
               "r"(inside ? 4 : 0));
}

// Ends a group of copies.
__device__ void commit_group() { asm volatile("cp.async.commit_group;"); }

// Waits until at most PENDING groups are under way.
template <int PENDING>
__device__ void wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// One thread's part in loading tiles of A or B: every STEPth line, at one place along K.
struct TileLoader {
  const float* from[COPIES];

  // Lines past the edge become the last one, whose products nobody stores.
  __device__ TileLoader(const float* matrix, int first, int lines, int k) {
#pragma unroll
    for (int r = 0; r < COPIES; ++r) {
      const int line = min(first + int(threadIdx.x) / BK + r * STEP, lines - 1);
      from[r] = matrix + line * size_t(k) + threadIdx.x % BK;
    }
  }

  // Begins to copy the next tile; `inside` says whether its place along K is.
  __device__ void load_tile(float (*tile)[PITCH], bool inside) {
#pragma unroll
    for (int r = 0; r < COPIES; ++r) {
      cp_async(&tile[threadIdx.x % BK][threadIdx.x / BK + r * STEP], from[r], inside);
      from[r] += BK;
    }
  }
};

// The eight values of a thread: two float4 of a row of the tile, `apart` floats from one another.
__device__ void load_fragment(float (&to)[8], const float* tile, int apart) {
  *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(tile);
  *reinterpret_cast<float4*>(to + 4) = *reinterpret_cast<const float4*>(tile + apart);
}

// Four rows of a column of C from row i on: one float4 where that is possible.
__device__ void store(float* column, int i, int m, const float* value) {
  if (i + 4 <= m && reinterpret_cast<size_t>(column + i) % 16 == 0) {
    *reinterpret_cast<float4*>(column + i) = make_float4(value[0], value[1], value[2], value[3]);
  } else {
#pragma unroll
    for (int u = 0; u < 4; ++u)
      if (i + u < m) column[i + u] = value[u];
  }
}

// Which tile of `rows` by `columns` the block of this number computes.
__device__ int2 tile_at(int block, int rows, int columns) {
  const int band = block / (BAND * rows), rest = block % (BAND * rows);
  const int width = min(BAND, columns - band * BAND);  // the last band may be narrower
  return make_int2(rest / width, band * BAND + rest % width);
}

int ceil_div(int a, int b) { return (a + b - 1) / b; }

__global__ void __launch_bounds__(THREADS, BLOCKS)
    sgemm(const float* A, const float* B, float* C, int m, int n, int k, int tile_rows,
          int tile_columns, int depth) {
  __shared__ __align__(16) float As[STAGES][BK][PITCH], Bs[STAGES][BK][PITCH];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // In the tile, the first of its rows and of its columns.
  const int thread_row = warp % (BM / WM) * WM + lane / 2 % 8 * 4;
  const int thread_col = warp / (BM / WM) * WN + (lane / 16 * 2 + lane % 2) * 4;
  const int2 mine = tile_at(blockIdx.x, tile_rows, tile_columns);
  const int tile_row = mine.x * BM, tile_col = mine.y * BN;
  const int first = blockIdx.y * depth;  // where its slice of K begins
  TileLoader a_tile(A + first, tile_row, m, k), b_tile(B + first, tile_col, n, k);
  depth = min(depth, k - first);
  int left = depth - int(threadIdx.x % BK);  // of the slice, from its place on

#pragma unroll
  for (int stage = 0; stage < STAGES - 1; ++stage) {
    a_tile.load_tile(As[stage], left > 0);
    b_tile.load_tile(Bs[stage], left > 0);
    left -= BK;
    commit_group();
  }
  float acc[TN][TM] = {};
  for (int p0 = 0; p0 < depth; p0 += STAGES * BK) {  // zeros beyond the slice
#pragma unroll
    for (int stage = 0; stage < STAGES; ++stage) {
      wait_group<STAGES - 2>();  // for this tile; after the barrier all are done with the last
      __syncthreads();
      const int free = (stage + STAGES - 1) % STAGES;
      a_tile.load_tile(As[free], left > 0);
      b_tile.load_tile(Bs[free], left > 0);
      left -= BK;
      commit_group();
#pragma unroll
      for (int q = 0; q < BK; ++q) {
        float frag_a[TM], frag_b[TN];
        load_fragment(frag_a, &As[stage][q][thread_row], WM / 2);
        load_fragment(frag_b, &Bs[stage][q][thread_col], WN / 2);
#pragma unroll
        for (int v = 0; v < TN; ++v)
#pragma unroll
          for (int t = 0; t < TM; ++t) {
            const int u = v % 2 ? t : TM - 1 - t;  // down a column, up the next
            acc[v][u] += frag_a[u] * frag_b[v];
          }
      }
    }
  }
  C += blockIdx.y * size_t(m) * n;  // the slices lie one after the other
#pragma unroll
  for (int v = 0; v < TN; ++v) {
    const int j = tile_col + thread_col + v / 4 * (WN / 2) + v % 4;
    if (j >= n) break;
#pragma unroll
    for (int u = 0; u < TM; u += 4)
      store(C + j * size_t(m), tile_row + thread_row + u / 4 * (WM / 2), m, acc[v] + u);
  }
}

// C[e] is the sum of the slices' element e, in their order.
__global__ void add_slices(const float* slices, float* C, size_t elements, int count) {
  const size_t e = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  if (e >= elements) return;
  float sum = slices[e];
  for (int s = 1; s < count; ++s) sum += slices[s * elements + e];
  C[e] = sum;
}

int multiprocessors() {
  int device, count;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  return count;
}

// Of the depths that a slice of K may have, the one with the least estimated time, in clocks: a
// multiprocessor takes about 150 for one step along K of a tile, 2000 to begin and to end one;
// adding takes 4000 for the kernel, and moves 8 bytes for each element and slice at 16 a clock.
int slice_depth(int m, int n, int k) {
  const double sms = multiprocessors();
  const double blocks = double(ceil_div(m, BM)) * ceil_div(n, BN), elements = double(m) * n;
  int best = ceil_div(k, STAGES * BK) * STAGES * BK;
  double least = ceil(blocks / sms) * (best * 150.0 + 2000);
  for (int slices = 2; slices <= 32; ++slices) {
    const int depth = ceil_div(ceil_div(k, slices), STAGES * BK) * STAGES * BK;
    const int count = ceil_div(k, depth);
    if (count == 1) break;
    const double clocks = ceil(blocks * count / sms) * (depth * 150.0 + 2000) + 4000 +
                          8 * elements * count / (16 * sms);
    if (clocks < least) least = clocks, best = depth;
  }
  return best;
}

inline void launch(const float* A, const float* B, float* C, int m, int n, int k) {
  const int rows = ceil_div(m, BM), columns = ceil_div(n, BN);
  const int depth = slice_depth(m, n, k), count = ceil_div(k, depth);
  const dim3 grid(rows * columns, count);
  const size_t elements = size_t(m) * n;
  float* const to = count > 1 ? workspace<float, 2>(elements * count) : C;
  sgemm<<<grid, THREADS>>>(A, B, to, m, n, k, rows, columns, depth);
  if (count > 1) add_slices<<<(elements + 255) / 256, 256>>>(to, C, elements, count);
}

}  // namespace fp32
