// Rung 6: the counts are cleared while the keys are on the way.
//
// Changed:  a kernel of our own clears the counts instead of a memset, and the one that counts is a
//           programmatic launch: it may begin while the other still runs, and waits for it before
//           it adds to the counts.
// Why:      one launch after another costs a microsecond or more, in which DRAM has nothing to
//           do. Now the first loads are on the way at once.
// Mind:     the attribute alone is not enough. The first kernel says when the next may begin, the
//           next waits before it touches what the first writes.
// Bound:    DRAM.
// Command:  grade --lab histogram reference/histogram/06_early
#include <algorithm>

#include "histogram.cuh"

using Key = unsigned char;
constexpr int THREADS = 1024, QUADS = 3, EACH = 16;        // keys of a uint4
constexpr int LANES = 32, ROW = LANES * sizeof(unsigned);  // bytes of a bin

// Before sm_90 a kernel begins when the one before it has ended: there is nothing to say.
__device__ void let_next_kernel_begin() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

__device__ void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

__global__ void clear(unsigned* counts) {
  let_next_kernel_begin();
  counts[blockIdx.x * 256 + threadIdx.x] = 0;
}

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
  wait_for_kernel_before();
  if (tid < BINS<Key>) {
    unsigned sum = 0;
    for (int l = 0; l < LANES; ++l) sum += bins[tid * LANES + (lane + l) % LANES];
    atomicAdd(&counts[tid], sum);
  }
}

int device_has(cudaDeviceAttr attribute) {
  int value;
  cudaDeviceGetAttribute(&value, attribute, 0);
  return value;
}

template <>
void run_custom<Key>(thrust::device_vector<Key>& keys, thrust::device_vector<unsigned>& counts,
                     int n) {
  const Key* in = keys.data().get();
  unsigned* bins = counts.data().get();
  clear<<<BINS<Key> / 256, 256>>>(bins);
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed =
      device_has(cudaDevAttrComputeCapabilityMajor) >= 9;
  cudaLaunchConfig_t config = {};
  config.gridDim =
      dim3(std::min(n / EACH / THREADS + 1, device_has(cudaDevAttrMultiProcessorCount)));
  config.blockDim = dim3(THREADS);
  config.attrs = &early;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, count, in, bins, n);
}
