// Rung 5: eight copies of the bins, by lanes; one launch.
//
// Changed:  a bin is eight words in a row, and lane l adds to word l % 8 of its key's bin. 128 KiB
//           leave room for one block of 1024 threads. Blocks add to totals that are 0 between
//           calls; the block that finishes last moves them to counts and leaves zeros for the next
//           call, so that there is no memset.
// Why:      lanes that differ modulo 8 use different banks, so an atomic operation of a warp takes
//           four turns at most, whatever the keys are: random, among three, or all equal. DRAM
//           brings fewer.
// Mind:     __threadfence() makes a block's additions visible before its mark that it has finished.
// Bound:    DRAM.
// Command:  grade --lab histogram-ints reference/histogram-ints/05_lanes
#include <algorithm>

#include "histogram.cuh"

using Key = int;
constexpr int THREADS = 1024, COPIES = 8;
constexpr int QUADS = 4;  // int4 of a thread that are on the way
constexpr int SHARED = BINS<Key> * COPIES * sizeof(unsigned);

__device__ unsigned totals[BINS<Key>];
__device__ unsigned finished;

// own: the first bin's word for this lane.
__device__ void count_quad(unsigned* own, int4 v) {
  atomicAdd(&own[v.x * COPIES], 1);
  atomicAdd(&own[v.y * COPIES], 1);
  atomicAdd(&own[v.z * COPIES], 1);
  atomicAdd(&own[v.w * COPIES], 1);
}

// Every key of this block, in rounds of QUADS int4 for each thread of the grid.
__device__ void count_keys(unsigned* bins, const Key* keys, int n) {
  const int4* wide = reinterpret_cast<const int4*>(keys);
  unsigned* own = bins + threadIdx.x % COPIES;
  const int quads = n / 4, step = gridDim.x * THREADS;
  int i = blockIdx.x * THREADS + threadIdx.x;
  for (; i + (QUADS - 1) * step < quads; i += QUADS * step) {
    int4 v[QUADS];
#pragma unroll
    for (int q = 0; q < QUADS; ++q) v[q] = __ldcs(wide + i + q * step);
#pragma unroll
    for (int q = 0; q < QUADS; ++q) count_quad(own, v[q]);
  }
  for (; i < quads; i += step) count_quad(own, __ldcs(wide + i));
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x < n % 4)
    atomicAdd(&own[keys[quads * 4 + threadIdx.x] * COPIES], 1);
}

__global__ void __launch_bounds__(THREADS) count(const Key* keys, unsigned* counts, int n) {
  extern __shared__ uint4 copies[];  // two for each bin
  __shared__ bool last;
  for (int c = threadIdx.x; c < BINS<Key> * 2; c += THREADS) copies[c] = {};
  __syncthreads();
  count_keys(reinterpret_cast<unsigned*>(copies), keys, n);
  __syncthreads();
  for (int b = threadIdx.x; b < BINS<Key>; b += THREADS) {
    const int half = b / 4 % 2;  // four bins begin with the one, four with the other: all banks
    const uint4 u = copies[b * 2 + half], v = copies[b * 2 + 1 - half];
    const unsigned sum = u.x + u.y + u.z + u.w + v.x + v.y + v.z + v.w;
    if (sum > 0) atomicAdd(&totals[b], sum);
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  for (int b = threadIdx.x; b < BINS<Key>; b += THREADS) counts[b] = atomicExch(&totals[b], 0);
}

int multiprocessors() {
  int count;
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0);
  return count;
}

template <>
void run_custom<Key>(thrust::device_vector<Key>& keys, thrust::device_vector<unsigned>& counts,
                     int n) {
  cudaFuncSetAttribute(count, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED);
  const int blocks = std::min(n / 4 / THREADS + 1, multiprocessors());
  count<<<blocks, THREADS, SHARED>>>(keys.data().get(), counts.data().get(), n);
}
