// Rung 5: the next round of loads before the keys of this one are counted.
//
// Changed:  one block for each multiprocessor. A thread loads three uint4, and three more before it
//           counts the keys of the first: even the bins are cleared while the first are on the way.
//           Loads are marked as streaming (__ldcs): what they bring is the first to leave the L2.
// Why:      while a thread counts, its next 48 bytes are on the way: DRAM never waits for atomic
//           operations. Keys are read once; other lines, which would have to be written back, may
//           stay in the L2.
// Mind:     whether a uint4 exists is asked for each one, so that the last round is as the others.
// Bound:    DRAM.
// Command:  grade --lab histogram reference/histogram/05_ahead
#include <algorithm>

#include "histogram.cuh"

using Key = unsigned char;
constexpr int THREADS = 1024, QUADS = 3, EACH = 16;        // keys of a uint4
constexpr int LANES = 32, ROW = LANES * sizeof(unsigned);  // bytes of a bin

// own: the lane's offset in a bin, in bytes.
__device__ void count_word(unsigned* bins, unsigned word, int own) {
  const auto at = [&](unsigned row) {
    return reinterpret_cast<unsigned*>(reinterpret_cast<char*>(bins) + (row & 255 * ROW | own));
  };
  atomicAdd(at(word << 7), 1);
  atomicAdd(at(word >> 1), 1);
  atomicAdd(at(word >> 9), 1);
  atomicAdd(at(word >> 17), 1);
}

__device__ void count_quad(unsigned* bins, uint4 v, int own) {
  count_word(bins, v.x, own);
  count_word(bins, v.y, own);
  count_word(bins, v.z, own);
  count_word(bins, v.w, own);
}

// Those of QUADS uint4, from i on at a distance of step, that lie below count.
__device__ void load(uint4 (&v)[QUADS], const uint4* wide, int i, int step, int count) {
#pragma unroll
  for (int q = 0; q < QUADS; ++q)
    if (i + q * step < count) v[q] = __ldcs(wide + i + q * step);
}

__global__ void __launch_bounds__(THREADS) count(const Key* keys, unsigned* counts, int n) {
  __shared__ alignas(16) unsigned bins[BINS<Key> * LANES];
  const int tid = threadIdx.x, lane = tid % LANES, own = lane * sizeof(unsigned);
  const uint4* wide = reinterpret_cast<const uint4*>(keys);
  const int quads = n / EACH, step = gridDim.x * THREADS;
  uint4 v[QUADS], next[QUADS];
  int i = blockIdx.x * THREADS + tid;
  load(v, wide, i, step, quads);
  for (int b = tid; b < BINS<Key> * LANES / 4; b += THREADS) reinterpret_cast<uint4*>(bins)[b] = {};
  __syncthreads();
  for (; i < quads; i += QUADS * step) {
    load(next, wide, i + QUADS * step, step, quads);
#pragma unroll
    for (int q = 0; q < QUADS; ++q)
      if (i + q * step < quads) count_quad(bins, v[q], own);
#pragma unroll
    for (int q = 0; q < QUADS; ++q) v[q] = next[q];
  }
  if (blockIdx.x == gridDim.x - 1 && tid < n % EACH)
    atomicAdd(&bins[keys[quads * EACH + tid] * LANES + lane], 1);
  __syncthreads();
  if (tid < BINS<Key>) {
    unsigned sum = 0;
    for (int l = 0; l < LANES; ++l) sum += bins[tid * LANES + (lane + l) % LANES];
    atomicAdd(&counts[tid], sum);
  }
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
  const int blocks = std::min(n / EACH / THREADS + 1, multiprocessors());
  count<<<blocks, THREADS>>>(keys.data().get(), bins, n);
}
