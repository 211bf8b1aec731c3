// Tiles stay in registers; lanes pass them on by shuffles, so that shared memory looks idle.
// Stopped by: a shuffle takes the path to shared memory as a wavefront does.
#include "common.cuh"
namespace shuffles {
__global__ void __launch_bounds__(256) kernel(Gemm g) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int row = blockIdx.x * 32, column = (blockIdx.y * 8 + warp) * 32;
  float sum[32] = {};
  for (int p = 0; p < g.k; p += 4) {
    const float4 a = *(const float4*)(g.A + (row + lane) * g.k + p);
    const float4 b = *(const float4*)(g.B + (column + lane) * g.k + p);
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      sum[i] += __shfl_sync(~0u, a.x, i) * b.x;
      sum[i] += __shfl_sync(~0u, a.y, i) * b.y;
      sum[i] += __shfl_sync(~0u, a.z, i) * b.z;
      sum[i] += __shfl_sync(~0u, a.w, i) * b.w;
    }
  }
#pragma unroll
  for (int i = 0; i < 32; ++i) g.C[row + i + (column + lane) * g.m] = sum[i];
}
inline void run(const Gemm& g) { kernel<<<dim3(g.m / 32, g.n / 256), 256>>>(g); }
}  // namespace shuffles
