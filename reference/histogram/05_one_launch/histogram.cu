// Rung 5: one launch, and two uint4 of each thread on the way.
//
// Changed:  blocks add to totals that are 0 between calls. The block that finishes last moves
//           them to counts and leaves zeros for the next call; no memset. A thread loads two uint4
//           before it uses the first.
// Why:      a memset is a launch of its own, before which the kernel cannot start; DRAM needs more
//           bytes on the way than 16 of each thread.
// Mind:     __threadfence() makes a block's additions visible before its mark that it has finished.
// Bound:    DRAM.
// Command:  grade --lab histogram reference/histogram/05_one_launch
#include <algorithm>

#include "histogram.cuh"

using Key = unsigned char;
constexpr int THREADS = 1024, QUADS = 2, EACH = 16;        // keys of a uint4
constexpr int LANES = 32, ROW = LANES * sizeof(unsigned);  // bytes of a bin

__device__ unsigned totals[BINS<Key>];
__device__ unsigned finished;

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

// Every key of this block, in rounds of QUADS uint4 for each thread of the grid.
__device__ void count_keys(unsigned* bins, const Key* keys, int n) {
  const int tid = threadIdx.x, own = tid % LANES * sizeof(unsigned), step = gridDim.x * THREADS;
  const uint4* wide = reinterpret_cast<const uint4*>(keys);
  int i = blockIdx.x * THREADS + tid;
  for (; i + (QUADS - 1) * step < n / EACH; i += QUADS * step) {
    uint4 v[QUADS];
#pragma unroll
    for (int q = 0; q < QUADS; ++q) v[q] = __ldcs(wide + i + q * step);
#pragma unroll
    for (int q = 0; q < QUADS; ++q) count_quad(bins, v[q], own);
  }
  for (; i < n / EACH; i += step) count_quad(bins, __ldcs(wide + i), own);
  if (blockIdx.x == gridDim.x - 1 && tid < n % EACH)
    atomicAdd(&bins[keys[n / EACH * EACH + tid] * LANES + tid % LANES], 1);
}

__global__ void __launch_bounds__(THREADS) count(const Key* keys, unsigned* counts, int n) {
  __shared__ alignas(16) unsigned bins[BINS<Key> * LANES];
  __shared__ bool last;
  const int tid = threadIdx.x;
  for (int b = tid; b < BINS<Key> * LANES / 4; b += THREADS) reinterpret_cast<uint4*>(bins)[b] = {};
  __syncthreads();
  count_keys(bins, keys, n);
  __syncthreads();
  if (tid < BINS<Key>) {
    unsigned sum = 0;
    for (int l = 0; l < LANES; ++l) sum += bins[tid * LANES + (tid + l) % LANES];
    atomicAdd(&totals[tid], sum);
    __threadfence();
  }
  __syncthreads();
  if (tid == 0) last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  if (last && tid < BINS<Key>) counts[tid] = atomicExch(&totals[tid], 0);
}

int multiprocessors() {
  int count;
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0);
  return count;
}

template <>
void run_custom<Key>(thrust::device_vector<Key>& keys, thrust::device_vector<unsigned>& counts,
                     int n) {
  const int blocks = std::min(n / EACH / THREADS + 1, 2 * multiprocessors());
  count<<<blocks, THREADS>>>(keys.data().get(), counts.data().get(), n);
}
