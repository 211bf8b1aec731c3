// Rung 6: blocks in the order of out.
//
// Changed:  blockIdx.x goes down the rows of in: blocks that run together write rows of out side by
//           side, and read from rows that lie apart.
// Why:      a tile is 64 pieces of 256 bytes on either side. Writes wait in the L2 until it needs
//           the room; pieces that lie side by side can then leave it together, in one page of DRAM.
//           Reads are asked for at once and gain less by it.
// Bound:    DRAM. Where rows are aligned nowhere, instructions and halves of sectors.
// Command:  grade --lab transpose reference/transpose/06_in_order
#include "transpose.cuh"

constexpr int TILE = 64, THREADS = 256, QUADS = TILE / 4, STEPS = TILE * QUADS / THREADS;

// `left` of the elements exist; wide: all four or none, and they are aligned.
__device__ float4 load(const float* in, int left, bool wide) {
  float4 v = {};
  if (wide && left > 0) v = *reinterpret_cast<const float4*>(in);
  if (wide) return v;
  if (left > 0) v.x = in[0];
  if (left > 1) v.y = in[1];
  if (left > 2) v.z = in[2];
  if (left > 3) v.w = in[3];
  return v;
}

__device__ void store(float* out, float4 v, int left, bool wide) {
  if (wide && left > 0) *reinterpret_cast<float4*>(out) = v;
  if (wide) return;
  if (left > 0) out[0] = v.x;
  if (left > 1) out[1] = v.y;
  if (left > 2) out[2] = v.z;
  if (left > 3) out[3] = v.w;
}

// Where element r of the tile's row c begins, if r is a multiple of four.
__device__ int place(int c, int r) { return c * TILE + ((r / 4) ^ (c / 4)) * 4; }

__global__ void transpose(const float* in, float* out, int rows, int columns) {
  __shared__ alignas(16) float tile[TILE * TILE];               // by the rows of out
  const int top = blockIdx.x * TILE, left = blockIdx.y * TILE;  // neighbours: below each other
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  // A warp's part of the tile in each step: four rows, and half of the quads.
  const int quad = lane % 8 + warp % 2 * 8, row = lane / 8 + warp / 2 * 4;
  float4 v[STEPS];
#pragma unroll
  for (int s = 0; s < STEPS; ++s) {
    const int i = top + row + s * 16, j = left + quad * 4;
    v[s] = load(in + i * columns + j, i < rows ? columns - j : 0, columns % 4 == 0);
  }
#pragma unroll
  for (int s = 0; s < STEPS; ++s) {
    const int r = row + s * 16, c = quad * 4;
    tile[place(c, r) + r % 4] = v[s].x;
    tile[place(c + 1, r) + r % 4] = v[s].y;
    tile[place(c + 2, r) + r % 4] = v[s].z;
    tile[place(c + 3, r) + r % 4] = v[s].w;
  }
  __syncthreads();
#pragma unroll
  for (int s = 0; s < STEPS; ++s) {
    const int c = row + s * 16, r = quad * 4, j = left + c, i = top + r;
    const float4 u = *reinterpret_cast<const float4*>(tile + place(c, r));
    store(out + j * rows + i, u, j < columns ? rows - i : 0, rows % 4 == 0);
  }
}

template <>
void run_custom<float>(thrust::device_vector<float>& in, thrust::device_vector<float>& out,
                       int rows, int columns) {
  const dim3 grid((rows + TILE - 1) / TILE, (columns + TILE - 1) / TILE);
  transpose<<<grid, THREADS>>>(in.data().get(), out.data().get(), rows, columns);
}
