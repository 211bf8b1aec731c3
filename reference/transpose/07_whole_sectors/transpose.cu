// Rung 7: whole sectors.
//
// Changed:  the part of each row of out that a block writes begins at a multiple of eight floats:
// up
//           to seven rows of in above the tile, which the block reads, too. Floats are read and
//           written one by one, neighbours by neighbouring lanes, and rows of the tile have an odd
//           length. 512 threads have nine loads each on the way.
// Why:      the L2 writes sectors of 32 bytes. Where extents are odd, tiles would meet in the
// middle
//           of sectors, and a sector that is written in part has to be read first. float4 needs
//           rows that are aligned; with enough on the way, DRAM does not ask for it.
// Bound:    DRAM, at all extents.
// Command:  grade --lab transpose reference/transpose/07_whole_sectors
#include "transpose.cuh"

constexpr int TILE = 64, THREADS = 512, SECTOR = 8;  // floats, threads, floats
constexpr int DEEP = TILE + SECTOR - 1;              // rows of in that a block reads
constexpr int LINES = THREADS / TILE, STEPS = (DEEP + LINES - 1) / LINES;

__global__ void transpose(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[TILE][DEEP];  // by the rows of out
  const int top = blockIdx.x * TILE - (SECTOR - 1), left = blockIdx.y * TILE;
  const bool inside = top >= 0 && top + LINES * STEPS <= rows && left + TILE <= columns;
  {
    const int column = threadIdx.x % TILE, line = threadIdx.x / TILE, j = left + column;
    float v[STEPS];
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
      const int i = top + line + s * LINES;
      if (inside || (i >= 0 && i < rows && j < columns)) v[s] = in[i * columns + j];
    }
#pragma unroll
    for (int s = 0; s < STEPS; ++s)
      if (line + s * LINES < DEEP) tile[column][line + s * LINES] = v[s];
  }
  __syncthreads();
#pragma unroll
  for (int column = threadIdx.x / 32; column < TILE; column += THREADS / 32) {
    const int j = left + column, skip = SECTOR - 1 - j * rows % SECTOR;
#pragma unroll
    for (int r = skip + threadIdx.x % 32; r < skip + TILE; r += 32) {
      const int i = top + r;
      if (inside || (i >= 0 && i < rows && j < columns)) out[j * rows + i] = tile[column][r];
    }
  }
}

template <>
void run_custom<float>(thrust::device_vector<float>& in, thrust::device_vector<float>& out,
                       int rows, int columns) {
  const dim3 grid((rows + SECTOR - 1 + TILE - 1) / TILE, (columns + TILE - 1) / TILE);
  transpose<<<grid, THREADS>>>(in.data().get(), out.data().get(), rows, columns);
}
