// Alice's sum: every warp adds up through shuffles, and two launches are enough.
#include "reduction.cuh"

constexpr int THREADS = 256, BLOCKS = 512;

__device__ float sums[BLOCKS];

__global__ void reduce(const float* in, float* out, int n) {
  __shared__ float part[THREADS / 32];
  float sum = 0.0f;
  for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS) sum += in[i];
  for (int s = 16; s > 0; s /= 2) sum += __shfl_down_sync(0xffffffff, sum, s);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  sum = 0.0f;
  for (int w = 0; w < THREADS / 32; ++w) sum += part[w];
  out[blockIdx.x] = sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& in, thrust::device_vector<float>& out, int n) {
  static float* kept = nullptr;
  if (kept == nullptr) cudaGetSymbolAddress((void**)&kept, sums);
  reduce<<<BLOCKS, THREADS>>>(in.data().get(), kept, n);
  reduce<<<1, THREADS>>>(kept, out.data().get(), BLOCKS);
}
