// Several extern shared arrays, which all begin at one address, in blocks of 64 threads: kernels that
// take them for different memory, and kernels that do not.
#include <cuda_pipeline.h>

#define KERNEL extern "C" __global__ void
extern __shared__ float As[];
extern __shared__ float Bs[];
extern __shared__ int counts[];
extern __shared__ short pairs[];
extern __shared__ float4 vectors[];

// --- wrong

KERNEL product(const float* in, float* out) {
  const int t = threadIdx.x;
  float sum = 0;
  for (int step = 0; step < 2; ++step) {
    As[t] = in[t + step];
    Bs[t] = in[t + 64];  // BAD
    __syncthreads();
    for (int k = 0; k < 8; ++k) sum += As[t / 8 * 8 + k] * Bs[k * 8 + t % 8];
    __syncthreads();
  }
  out[t] = sum;
}
KERNEL one_after_the_other(const float* in, float* out) {
  const int t = threadIdx.x;
  As[t] = in[t];
  __syncthreads();
  Bs[t] = in[t + 64];  // BAD
  __syncthreads();
  out[t] = As[63 - t] + Bs[63 - t];
}
KERNEL copied(const float* in, float* out) {
  const int t = threadIdx.x;
  As[t] = in[t];
  __syncthreads();
  __pipeline_memcpy_async(&Bs[t], &in[t + 64], 4);  // BAD
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  out[t] = As[63 - t] + Bs[63 - t];
}
KERNEL three(const float* in, float* out) {
  const int t = threadIdx.x;
  if (t < 24) As[t] = in[t];
  __syncthreads();
  out[t] = As[t % 24];
  __syncthreads();
  Bs[t] = in[t];
  __syncthreads();
  counts[t] = t;  // BAD
  __syncthreads();
  out[t] += Bs[63 - t] + counts[63 - t];
}
KERNEL halves(const float* in, float* out) {
  const int t = threadIdx.x;
  pairs[t] = t;
  pairs[t + 64] = -t;
  __syncthreads();
  vectors[t] = make_float4(in[t], t, t, t);  // BAD
  __syncthreads();
  out[t] = vectors[63 - t].x + pairs[t + 64];
}
KERNEL histogram(const float* in, float* out) {
  const int t = threadIdx.x;
  if (t < 16) counts[t] = 0;
  __syncthreads();
  Bs[t] = in[t];  // BAD
  __syncthreads();
  const float mine = Bs[63 - t];
  __syncthreads();
  atomicAdd(&counts[t % 16], 1);
  __syncthreads();
  out[t] = mine + counts[t % 16];
}

// No order between the two, either: the race is found as well.
KERNEL by_other_threads(const float* in, float* out) {
  const int t = threadIdx.x;
  As[t] = in[t];
  Bs[63 - t] = in[t + 64];  // BAD
  __syncthreads();
  out[t] = As[63 - t] + Bs[63 - t];
}

// --- right

KERNEL phases(const float* in, float* out) {
  const int t = threadIdx.x;
  float sum = 0;
  for (int step = 0; step < 3; ++step) {
    As[t] = in[t + step];
    __syncthreads();
    sum += As[63 - t];
    __syncthreads();
    counts[63 - t] = t;
    __syncthreads();
    sum += counts[t];
    __syncthreads();
  }
  out[t] = sum;
}
KERNEL bits(const float* in, float* out) {
  const int t = threadIdx.x;
  As[t] = in[t];
  __syncthreads();
  out[t] = As[63 - t] + (counts[63 - t] & 1);
}
KERNEL cleared_as_vectors(const float* in, float* out) {
  const int t = threadIdx.x;
  vectors[t] = make_float4(1, 1, 1, 1);
  __syncthreads();
  As[2 * t] = in[t];
  atomicAdd(&As[3], 1.0f);
  atomicAdd(&As[5], 1.0f);
  __syncthreads();
  out[t] = vectors[63 - t].x;
}
KERNEL exchanged(const float* in, float* out) {
  const int t = threadIdx.x;
  As[t] = in[t];
  Bs[t + 64] = in[t + 64];
  __syncthreads();
  const float mine = As[63 - t];
  __syncthreads();
  Bs[t] = 2 * mine;
  As[t + 64] = Bs[t + 64];
  __syncthreads();
  out[t] = Bs[63 - t] + As[64 + t];
}
KERNEL behind(const float* in, float* out) {
  const int t = threadIdx.x;
  float* const second = As + 64;
  As[t] = in[t];
  second[63 - t] = in[t + 64];
  __syncthreads();
  out[t] = As[63 - t] + second[t];
}
