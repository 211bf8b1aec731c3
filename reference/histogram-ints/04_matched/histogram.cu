// Rung 4 (a trap): equal keys of a warp are counted once.
//
// Changed:  __match_any_sync gives each lane the lanes with the same key; the first of them adds
//           their number.
// Why:      no two lanes of a warp add to the same word, however skewed the keys are. But the
//           addition of 1 does that by itself (rung 3), and a match takes a turn for each different
//           key of a warp: random keys are counted far more slowly.
// Mind:     lanes that do something together need the mask of those that are there: in the last
//           round not all are.
// Bound:    the matches.
// Command:  grade --lab histogram-ints reference/histogram-ints/04_matched
#include <algorithm>

#include "histogram.cuh"

using Key = int;
constexpr int THREADS = 512;
constexpr int QUADS = 4;  // int4 of a thread that are on the way

__device__ void count_key(unsigned* bins, int key) {
  const unsigned same = __match_any_sync(__activemask(), key);
  if (threadIdx.x % 32 == __ffs(same) - 1) atomicAdd(&bins[key], __popc(same));
}

__device__ void count_quad(unsigned* bins, int4 v) {
  count_key(bins, v.x);
  count_key(bins, v.y);
  count_key(bins, v.z);
  count_key(bins, v.w);
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
