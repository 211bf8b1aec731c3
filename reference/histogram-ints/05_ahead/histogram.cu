// Rung 5: the next round of loads before the keys of this one are counted.
//
// Changed:  on rung 3, one block of 1024 threads for each multiprocessor. A thread loads four int4,
//           and four more before it counts the keys of the first: even the bins are cleared while
//           the first are on the way. Up to 2^26 keys, loads are marked as streaming (__ldcs): what
//           they bring is the first to leave the L2.
// Why:      while a thread counts, its next 64 bytes are on the way. With one block there are
//           fewer additions to the global counts. Lines of others, which would have to be written
//           back, may stay in the L2; where keys exceed it many times that saves little, and marked
//           loads are slower.
// Mind:     whether an int4 exists is asked for each one, so that the last round is as the others.
// Bound:    DRAM.
// Command:  grade --lab histogram-ints reference/histogram-ints/05_ahead
#include <algorithm>

#include "histogram.cuh"

using Key = int;
constexpr int THREADS = 1024, QUADS = 4;  // int4 of a thread in each round
constexpr int MOST_STREAMED = 1 << 26;    // keys

__device__ void count_quad(unsigned* bins, int4 v) {
  atomicAdd(&bins[v.x], 1);
  atomicAdd(&bins[v.y], 1);
  atomicAdd(&bins[v.z], 1);
  atomicAdd(&bins[v.w], 1);
}

// Those of QUADS int4, from i on at a distance of step, that lie below count.
template <bool STREAMED>
__device__ void load(int4 (&v)[QUADS], const int4* wide, int i, int step, int count) {
#pragma unroll
  for (int q = 0; q < QUADS; ++q)
    if (i + q * step < count) v[q] = STREAMED ? __ldcs(wide + i + q * step) : wide[i + q * step];
}

template <bool STREAMED>
__global__ void __launch_bounds__(THREADS) count(const Key* keys, unsigned* counts, int n) {
  __shared__ unsigned bins[BINS<Key>];
  const int4* wide = reinterpret_cast<const int4*>(keys);
  const int quads = n / 4, step = gridDim.x * THREADS;
  int4 v[QUADS], next[QUADS];
  int i = blockIdx.x * THREADS + threadIdx.x;
  load<STREAMED>(v, wide, i, step, quads);
  for (int b = threadIdx.x; b < BINS<Key>; b += THREADS) bins[b] = 0;
  __syncthreads();
  for (; i < quads; i += QUADS * step) {
    load<STREAMED>(next, wide, i + QUADS * step, step, quads);
#pragma unroll
    for (int q = 0; q < QUADS; ++q)
      if (i + q * step < quads) count_quad(bins, v[q]);
#pragma unroll
    for (int q = 0; q < QUADS; ++q) v[q] = next[q];
  }
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
  const int blocks = std::min(n / 4 / THREADS + 1, multiprocessors());
  const auto kernel = n <= MOST_STREAMED ? count<true> : count<false>;
  kernel<<<blocks, THREADS>>>(keys.data().get(), bins, n);
}
