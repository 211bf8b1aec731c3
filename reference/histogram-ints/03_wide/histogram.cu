// Rung 3: four int4 of each thread on the way.
//
// Changed:  a thread loads int4, four of them before it uses the first. The keys behind the last
//           whole int4 belong to the first threads of the last block.
// Why:      64 bytes of each thread are on the way at a time instead of 4, which DRAM's latency
//           needs, with a quarter of the loads.
// Bound:    DRAM, nearly. Bank conflicts of random keys cost less than their loads, and equal keys
//           have none: atomicAdd of the constant 1 whose result nobody uses is compiled to
//           ATOMS.POPC.INC, which adds to a word as many as there are lanes for it.
// Command:  grade --lab histogram-ints reference/histogram-ints/03_wide
#include <algorithm>

#include "histogram.cuh"

using Key = int;
constexpr int THREADS = 512;
constexpr int QUADS = 4;  // int4 of a thread that are on the way

__device__ void count_quad(unsigned* bins, int4 v) {
  atomicAdd(&bins[v.x], 1);
  atomicAdd(&bins[v.y], 1);
  atomicAdd(&bins[v.z], 1);
  atomicAdd(&bins[v.w], 1);
}

__global__ void __launch_bounds__(THREADS) count(const Key* keys, unsigned* counts, int n) {
  __shared__ unsigned bins[BINS<Key>];
  for (int b = threadIdx.x; b < BINS<Key>; b += THREADS) bins[b] = 0;
  __syncthreads();
  const int4* wide = reinterpret_cast<const int4*>(keys);
  const int quads = n / 4, step = gridDim.x * THREADS;
  int i = blockIdx.x * THREADS + threadIdx.x;
  for (; i + (QUADS - 1) * step < quads; i += QUADS * step) {
    int4 v[QUADS];
#pragma unroll
    for (int q = 0; q < QUADS; ++q) v[q] = wide[i + q * step];
#pragma unroll
    for (int q = 0; q < QUADS; ++q) count_quad(bins, v[q]);
  }
  for (; i < quads; i += step) count_quad(bins, wide[i]);
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x < n % 4)
    atomicAdd(&bins[keys[quads * 4 + threadIdx.x]], 1);
  __syncthreads();
  for (int b = threadIdx.x; b < BINS<Key>; b += THREADS)
    if (bins[b] > 0) atomicAdd(&counts[b], bins[b]);
}

int multiprocessors() {
  int count;
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0);
  return count;
}

template <>
void run_custom<Key>(thrust::device_vector<Key>& keys, thrust::device_vector<unsigned>& counts,
                     int n) {
  unsigned* bins = counts.data().get();
  cudaMemsetAsync(bins, 0, BINS<Key> * sizeof(unsigned));
  const int blocks = std::min(n / 4 / THREADS + 1, 4 * multiprocessors());
  count<<<blocks, THREADS>>>(keys.data().get(), bins, n);
}
