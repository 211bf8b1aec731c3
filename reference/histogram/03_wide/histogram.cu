// Rung 3: sixteen keys in one load.
//
// Changed:  a thread loads a uint4, 16 bytes, and takes the keys out of its words by shifts. The
//           bytes behind the last whole uint4 belong to the first threads of the last block.
// Why:      a sixteenth of the loads, and sixteen times as many bytes on the way.
// Bound:    shared memory: of 32 keys at random three or four lie in one bank, which takes as many
//           turns. Equal keys take one: atomicAdd of the constant 1 whose result nobody uses is
//           compiled to ATOMS.POPC.INC, which adds to a word as many as there are lanes for it.
// Command:  grade --lab histogram reference/histogram/03_wide
#include <algorithm>

#include "histogram.cuh"

using Key = unsigned char;
constexpr int THREADS = 256, EACH = 16;  // keys of a uint4

__device__ void count_word(unsigned* bins, unsigned word) {
#pragma unroll
  for (int shift = 0; shift < 32; shift += 8) atomicAdd(&bins[word >> shift & 255], 1);
}

__global__ void count(const Key* keys, unsigned* counts, int n) {
  __shared__ unsigned bins[BINS<Key>];
  for (int b = threadIdx.x; b < BINS<Key>; b += THREADS) bins[b] = 0;
  __syncthreads();
  const uint4* wide = reinterpret_cast<const uint4*>(keys);
  for (int i = blockIdx.x * THREADS + threadIdx.x; i < n / EACH; i += gridDim.x * THREADS) {
    const uint4 v = wide[i];
    count_word(bins, v.x);
    count_word(bins, v.y);
    count_word(bins, v.z);
    count_word(bins, v.w);
  }
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x < n % EACH)
    atomicAdd(&bins[keys[n / EACH * EACH + threadIdx.x]], 1);
  __syncthreads();
  for (int b = threadIdx.x; b < BINS<Key>; b += THREADS) atomicAdd(&counts[b], bins[b]);
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
  const int blocks = std::min(n / EACH / THREADS + 1, 8 * multiprocessors());
  count<<<blocks, THREADS>>>(keys.data().get(), bins, n);
}
