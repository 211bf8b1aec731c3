// Rung 7: several elements for each thread, in wide loads.
//
// Changed:  a grid that fills the GPU once or twice goes through all tiles of 4096 elements. A
//           thread loads four float4 before it uses the first.
// Why:      64 bytes of each thread are on the way at a time instead of 8, which DRAM's latency
//           needs; and the tree at the end runs once for many elements. Two passes are enough.
// Bound:    DRAM for large n; for small n the second launch.
// Command:  grade --lab reduction reference/reduction/07_wide
#include "reduction.cuh"

constexpr int THREADS = 256, QUADS = 4, TILE = THREADS * QUADS;  // of float4
constexpr int MOST_BLOCKS = 1056;

__device__ float warp_sum(float sum) {
#pragma unroll
  for (int s = 16; s > 0; s /= 2) sum += __shfl_down_sync(0xffffffff, sum, s);
  return sum;  // in lane 0
}

__device__ float block_sum(float sum) {
  __shared__ float part[THREADS / 32];
  const int tid = threadIdx.x;
  sum = warp_sum(sum);
  if (tid % 32 == 0) part[tid / 32] = sum;
  __syncthreads();
  if (tid < 32) sum = warp_sum(tid < THREADS / 32 ? part[tid] : 0.0f);
  return sum;  // in thread 0
}

__device__ float added(float4 v) { return (v.x + v.y) + (v.z + v.w); }

// What this thread adds up: float4 at a distance of THREADS from each other, so that a warp's
// load is 512 bytes in a row, and QUADS of them before the first is used.
__device__ float thread_sum(const float* in, int n) {
  const float4* wide = reinterpret_cast<const float4*>(in);
  const int quads = n / 4, tid = threadIdx.x;
  float sum = 0.0f;
  int at = blockIdx.x * TILE + tid;
  for (; at + (QUADS - 1) * THREADS < quads; at += gridDim.x * TILE) {
    float4 v[QUADS];
#pragma unroll
    for (int q = 0; q < QUADS; ++q) v[q] = wide[at + q * THREADS];
#pragma unroll
    for (int q = 0; q < QUADS; ++q) sum += added(v[q]);
  }
#pragma unroll
  for (int q = 0; q < QUADS; ++q)
    if (at + q * THREADS < quads) sum += added(wide[at + q * THREADS]);
  if (blockIdx.x == 0 && tid < n % 4) sum += in[4 * quads + tid];
  return sum;
}

__global__ void reduce(const float* in, float* out, int n) {
  const float sum = block_sum(thread_sum(in, n));
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& in, thrust::device_vector<float>& out, int n) {
  static float* sums;  // of the blocks; kept from call to call
  if (sums == nullptr) cudaMalloc(&sums, MOST_BLOCKS * sizeof(float));
  const int tiles = (n / 4 + TILE - 1) / TILE;
  const int blocks = tiles < 1 ? 1 : tiles < MOST_BLOCKS ? tiles : MOST_BLOCKS;
  float* to = out.data().get();
  reduce<<<blocks, THREADS>>>(in.data().get(), blocks == 1 ? to : sums, n);
  if (blocks > 1) reduce<<<1, THREADS>>>(sums, to, blocks);
}
