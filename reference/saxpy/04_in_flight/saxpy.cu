// Rung 4 (a trap): several loads in flight, marked as streaming.
//
// Changed:  a thread has two float4 of each vector, a block's width apart, and loads all four
//           before it computes. Loads and stores say that nobody will need these lines again.
// Why:      64 bytes of each thread are on the way, and lines marked as streaming leave the L2
//           first: both should help. Rung 3 has enough on the way already, and where vectors exceed
//           the L2 this one is slower: 0.92 to 0.93 of a copy instead of 1.01 to 1.05 (README.md).
// Bound:    DRAM.
// Command:  grade --lab saxpy reference/saxpy/04_in_flight
#include "saxpy.cuh"

constexpr int THREADS = 256, QUADS = 2, TILE = THREADS * QUADS;  // of float4

__device__ float4 saxpy(float alpha, float4 x, float4 y) {
  return make_float4(alpha * x.x + y.x, alpha * x.y + y.y, alpha * x.z + y.z, alpha * x.w + y.w);
}

__global__ void saxpy(const float* x, float* y, int n, float alpha) {
  const int first = blockIdx.x * TILE + threadIdx.x, quads = n / 4;
  const float4* wide_x = reinterpret_cast<const float4*>(x);
  float4* wide_y = reinterpret_cast<float4*>(y);
  if (first + (QUADS - 1) * THREADS < quads) {
    float4 a[QUADS], b[QUADS];
#pragma unroll
    for (int q = 0; q < QUADS; ++q) {
      a[q] = __ldcs(wide_x + first + q * THREADS);
      b[q] = __ldcs(wide_y + first + q * THREADS);
    }
#pragma unroll
    for (int q = 0; q < QUADS; ++q) __stcs(wide_y + first + q * THREADS, saxpy(alpha, a[q], b[q]));
  } else {
    for (int i = first; i < quads; i += THREADS) wide_y[i] = saxpy(alpha, wide_x[i], wide_y[i]);
  }
  const int rest = 4 * quads + threadIdx.x;
  if (blockIdx.x == 0 && rest < n) y[rest] = alpha * x[rest] + y[rest];
}

template <>
void run_custom<float>(thrust::device_vector<float>& x, thrust::device_vector<float>& y, int n,
                       float alpha) {
  const int tiles = (n / 4 + TILE - 1) / TILE, blocks = tiles > 0 ? tiles : 1;
  saxpy<<<blocks, THREADS>>>(x.data().get(), y.data().get(), n, alpha);
}
