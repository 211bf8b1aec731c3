// Rung 1: a thread for each element.
//
// Changed:  the start of the ladder. threadIdx.x runs along a row of in.
// Why:      a warp reads 32 neighbours, 128 bytes in a row.
// Bound:    what a warp writes lies in 32 rows of out: 32 sectors of 32 bytes for 128 bytes. The L2
//           must merge them, eight warps' stores for each sector, before DRAM takes it.
// Command:  grade --lab transpose reference/transpose/01_naive
#include "transpose.cuh"

constexpr int TILE = 32;

__global__ void transpose(const float* in, float* out, int rows, int columns) {
  const int i = blockIdx.y * TILE + threadIdx.y, j = blockIdx.x * TILE + threadIdx.x;
  if (i < rows && j < columns) out[j * rows + i] = in[i * columns + j];
}

template <>
void run_custom<float>(thrust::device_vector<float>& in, thrust::device_vector<float>& out,
                       int rows, int columns) {
  const dim3 grid((columns + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
  transpose<<<grid, dim3(TILE, TILE)>>>(in.data().get(), out.data().get(), rows, columns);
}
