// Rung 4: swizzled tiles.
//
// Changed:  no padding; element (y, x) of the tile lies at column x ^ y of its row.
// Why:      in a row that is another order of the 32 banks, and in a column y runs through all of
//           them. It takes no memory, keeps rows aligned, and goes with accesses of any width.
// Bound:    as rung 3, DRAM's latency.
// Command:  grade --lab transpose reference/transpose/04_swizzled
#include "transpose.cuh"

constexpr int TILE = 32, DOWN = 8;  // a block has DOWN rows of threads; each does every DOWN-th row

__global__ void transpose(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[TILE][TILE];
  const int top = blockIdx.y * TILE, left = blockIdx.x * TILE, x = threadIdx.x;
#pragma unroll
  for (int y = threadIdx.y; y < TILE; y += DOWN) {
    const int i = top + y, j = left + x;
    if (i < rows && j < columns) tile[y][x ^ y] = in[i * columns + j];
  }
  __syncthreads();
#pragma unroll
  for (int y = threadIdx.y; y < TILE; y += DOWN) {
    const int j = left + y, i = top + x;
    if (i < rows && j < columns) out[j * rows + i] = tile[x][y ^ x];
  }
}

template <>
void run_custom<float>(thrust::device_vector<float>& in, thrust::device_vector<float>& out,
                       int rows, int columns) {
  const dim3 grid((columns + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
  transpose<<<grid, dim3(TILE, DOWN)>>>(in.data().get(), out.data().get(), rows, columns);
}
