// Rung 3: padded tiles.
//
// Changed:  a row of the tile is one float longer.
// Why:      the elements of a column are 33 floats apart, and so in 32 different banks.
// Bound:    DRAM's latency: a thread has four floats on the way, and then all of a block wait.
// Command:  grade --lab transpose reference/transpose/03_padded
#include "transpose.cuh"

constexpr int TILE = 32, DOWN = 8;  // a block has DOWN rows of threads; each does every DOWN-th row

__global__ void transpose(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[TILE][TILE + 1];
  const int top = blockIdx.y * TILE, left = blockIdx.x * TILE, x = threadIdx.x;
#pragma unroll
  for (int y = threadIdx.y; y < TILE; y += DOWN) {
    const int i = top + y, j = left + x;
    if (i < rows && j < columns) tile[y][x] = in[i * columns + j];
  }
  __syncthreads();
#pragma unroll
  for (int y = threadIdx.y; y < TILE; y += DOWN) {
    const int j = left + y, i = top + x;
    if (i < rows && j < columns) out[j * rows + i] = tile[x][y];
  }
}

template <>
void run_custom<float>(thrust::device_vector<float>& in, thrust::device_vector<float>& out,
                       int rows, int columns) {
  const dim3 grid((columns + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
  transpose<<<grid, dim3(TILE, DOWN)>>>(in.data().get(), out.data().get(), rows, columns);
}
