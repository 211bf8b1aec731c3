// Loads that no L1 may serve, in the order that suits it: its lines are all that they cost.
// Stopped by: such loads take the L2's bytes.
#include "common.cuh"
namespace past_the_l1 {
__global__ void __launch_bounds__(256) kernel(Gemm g) {
  const int lane = threadIdx.x % 32, i = blockIdx.x * 4,
            j = (blockIdx.y * 8 + threadIdx.x / 32) * 4;
  float sum[4][4] = {};
  for (int p = lane; p < g.k; p += 32) {
    float a[4], b[4];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      a[r] = __ldcg(g.A + (i + r) * g.k + p);
      b[r] = __ldcg(g.B + (j + r) * g.k + p);
    }
#pragma unroll
    for (int c = 0; c < 4; ++c)
#pragma unroll
      for (int r = 0; r < 4; ++r) sum[c][r] += a[r] * b[c];
  }
#pragma unroll
  for (int c = 0; c < 4; ++c)
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      for (int d = 16; d > 0; d /= 2) sum[c][r] += __shfl_xor_sync(~0u, sum[c][r], d);
      if (lane == 4 * c + r) g.C[i + r + (j + c) * g.m] = sum[c][r];
    }
}
inline void run(const Gemm& g) { kernel<<<dim3(g.m / 4, g.n / 32), 256>>>(g); }
}  // namespace past_the_l1
