// Rung 4: a copy of the bins for each lane.
//
// Changed:  a bin is 32 words, one for each lane of a warp: lane l adds to word l of its key's bin.
//           At the end a thread adds up a bin, beginning at its own lane's word. A copy of the bins
//           is 32 KiB, so blocks are as large as they can be.
// Why:      lane l uses bank l only, so an atomic operation of a warp takes one turn whatever the
//           keys are.
// Mind:     the address of a word takes a shift and a LOP3, (word >> s & 0x7f80) | own: a key's bin
//           is at 128 times the key, and the lane's offset fills the bits below.
// Bound:    DRAM's latency for large n: a thread has one load on the way, and waits for it.
// Command:  grade --lab histogram reference/histogram/04_lanes
#include <algorithm>

#include "histogram.cuh"

using Key = unsigned char;
constexpr int THREADS = 1024, EACH = 16;                   // keys of a uint4
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

__global__ void __launch_bounds__(THREADS) count(const Key* keys, unsigned* counts, int n) {
  __shared__ alignas(16) unsigned bins[BINS<Key> * LANES];
  const int tid = threadIdx.x, lane = tid % LANES, own = lane * sizeof(unsigned);
  for (int b = tid; b < BINS<Key> * LANES / 4; b += THREADS) reinterpret_cast<uint4*>(bins)[b] = {};
  __syncthreads();
  const uint4* wide = reinterpret_cast<const uint4*>(keys);
  for (int i = blockIdx.x * THREADS + tid; i < n / EACH; i += gridDim.x * THREADS) {
    const uint4 v = wide[i];
    count_word(bins, v.x, own);
    count_word(bins, v.y, own);
    count_word(bins, v.z, own);
    count_word(bins, v.w, own);
  }
  if (blockIdx.x == gridDim.x - 1 && tid < n % EACH)
    atomicAdd(&bins[keys[n / EACH * EACH + tid] * LANES + lane], 1);
  __syncthreads();
  for (int b = tid; b < BINS<Key>; b += THREADS) {
    unsigned sum = 0;
    for (int l = 0; l < LANES; ++l) sum += bins[b * LANES + (lane + l) % LANES];
    atomicAdd(&counts[b], sum);
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
  const int blocks = std::min(n / EACH / THREADS + 1, 2 * multiprocessors());
  count<<<blocks, THREADS>>>(keys.data().get(), bins, n);
}
