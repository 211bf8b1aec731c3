// A sum, by blocks of THREADS. Every thread adds up LOADS loads of WIDE floats at a time, a block's stride
// apart, or side by side with NEAR 1. BLOCKS: of the grid, which goes through all elements by turns; 0: as
// many as one turn needs. STYLE: how a block adds up its threads' sums; 0: neighbours first, by remainders;
// 1: the same by neighbouring threads; 2: the upper half onto the lower; 3: likewise, the last warp without
// barriers; 4: shuffles; 5: atomics on shared memory; 6: not at all. COMBINE: how blocks do; 0: passes until
// one is left; 1: atomics; 2: a second launch of one block; 3: the block that finishes last.
#include "reduction.cuh"

struct alignas(4 * WIDE) Words {
  float of[WIDE];
};

__device__ unsigned finished;

__device__ float from_lanes(float sum) {
#pragma unroll
  for (int s = 16; s > 0; s /= 2) sum += __shfl_down_sync(~0u, sum, s);
  return sum;
}

// The sum of all threads', in thread 0.
__device__ float block_sum(float sum) {
  const int t = threadIdx.x;
#if STYLE == 4
  __shared__ float of_warps[THREADS / 32];
  sum = from_lanes(sum);
  if (t % 32 == 0) of_warps[t / 32] = sum;
  __syncthreads();
  return t < 32 ? from_lanes(t < THREADS / 32 ? of_warps[t] : 0.0f) : 0.0f;
#elif STYLE == 5
  __shared__ float total;
  if (t == 0) total = 0.0f;
  __syncthreads();
  atomicAdd(&total, sum);
  __syncthreads();
  return total;
#else
  __shared__ float sums[THREADS];
  sums[t] = sum;
  __syncthreads();
#if STYLE == 0
  for (int s = 1; s < THREADS; s *= 2) {
    if (t % (2 * s) == 0) sums[t] += sums[t + s];
    __syncthreads();
  }
#elif STYLE == 1
  for (int s = 1; s < THREADS; s *= 2) {
    const int at = 2 * s * t;
    if (at < THREADS) sums[at] += sums[at + s];
    __syncthreads();
  }
#else
  for (int s = THREADS / 2; s > (STYLE == 3 ? 32 : 0); s /= 2) {
    if (t < s) sums[t] += sums[t + s];
    __syncthreads();
  }
#if STYLE == 3
  if (t < 32) {
#pragma unroll
    for (int s = 32; s > 0; s /= 2) {
      const float other = sums[t + s];
      __syncwarp();
      sums[t] += other;
      __syncwarp();
    }
  }
#endif
#endif
  return sums[0];
#endif
}

__device__ float thread_sum(const float* in, int n) {
  constexpr int TILE = THREADS * LOADS;
  const Words* words = reinterpret_cast<const Words*>(in);
  const int count = n / WIDE;
  float sum = 0.0f;
#if BLOCKS
  for (int base = blockIdx.x * TILE; base < count; base += BLOCKS * TILE)
#else
  const int base = blockIdx.x * TILE;
#endif
  {
    Words held[LOADS];
#pragma unroll
    for (int u = 0; u < LOADS; ++u) {
      const int at = base + (NEAR ? threadIdx.x * LOADS + u : u * THREADS + threadIdx.x);
      held[u] = at < count ? words[at] : Words{};
    }
#pragma unroll
    for (int u = 0; u < LOADS; ++u)
#pragma unroll
      for (int w = 0; w < WIDE; ++w) sum += held[u].of[w];
  }
  return sum;
}

__global__ void __launch_bounds__(THREADS) reduce(const float* in, float* sums, float* out, int n) {
  float sum = thread_sum(in, n);
#if STYLE == 6
  atomicAdd(out, sum);
#else
  sum = block_sum(sum);
#if COMBINE == 1
  if (threadIdx.x == 0) atomicAdd(out, sum);
#else
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
#endif
#if COMBINE == 3
  __shared__ bool last;
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  sum = 0.0f;
  for (int at = threadIdx.x; at < gridDim.x; at += THREADS) sum += __ldcg(sums + at);
  sum = block_sum(sum);
  if (threadIdx.x == 0) out[0] = sum;
#endif
#endif
}

__global__ void __launch_bounds__(THREADS) finish(const float* sums, float* out, int n) {
#if STYLE != 6
  float sum = 0.0f;
  for (int at = threadIdx.x; at < n; at += THREADS) sum += sums[at];
  sum = block_sum(sum);
  if (threadIdx.x == 0) out[0] = sum;
#endif
}

__global__ void __launch_bounds__(THREADS) again(const float* in, float* sums, int n) {
#if STYLE != 6
  const int at = blockIdx.x * THREADS + threadIdx.x;
  const float sum = block_sum(at < n ? in[at] : 0.0f);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
#endif
}

float* workspace(int count) {
  static float* kept = nullptr;
  if (kept == nullptr) cudaMalloc(&kept, sizeof(float) * count);
  return kept;
}

template <>
void run_custom<float>(thrust::device_vector<float>& in, thrust::device_vector<float>& out, int n) {
  constexpr int TILE = THREADS * LOADS * WIDE;
  int blocks = BLOCKS ? BLOCKS : (n + TILE - 1) / TILE;
  float* sums = workspace(2 * blocks);
  if (COMBINE == 1) cudaMemsetAsync(out.data().get(), 0, sizeof(float));
  reduce<<<blocks, THREADS>>>(in.data().get(), sums, out.data().get(), n);
  if (COMBINE == 2) finish<<<1, THREADS>>>(sums, out.data().get(), blocks);
  if (COMBINE != 0) return;
  if (blocks == 1) cudaMemcpyAsync(out.data().get(), sums, sizeof(float), cudaMemcpyDeviceToDevice);
  for (float* to = sums + blocks; blocks > 1; std::swap(sums, to)) {
    const int fewer = (blocks + THREADS - 1) / THREADS;
    again<<<fewer, THREADS>>>(sums, fewer == 1 ? out.data().get() : to, blocks);
    blocks = fewer;
  }
}
