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
// Command:  grade --lab histogram-ints reference/histogram-ints/06_early
#include <algorithm>

#include "histogram.cuh"

using Key = int;
constexpr int THREADS = 1024, QUADS = 4;  // int4 of a thread in each round
constexpr int MOST_STREAMED = 1 << 26;    // keys

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
  wait_for_kernel_before();
  for (int b = threadIdx.x; b < BINS<Key>; b += THREADS)
    if (bins[b] > 0) atomicAdd(&counts[b], bins[b]);
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
  config.gridDim = dim3(std::min(n / 4 / THREADS + 1, device_has(cudaDevAttrMultiProcessorCount)));
  config.blockDim = dim3(THREADS);
  config.attrs = &early;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, n <= MOST_STREAMED ? count<true> : count<false>, in, bins, n);
}
