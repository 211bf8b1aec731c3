// The code of small sizes, which loads what it multiplies, and at large ones a stride of zero: all
// loads hit one line. The result is wrong there.
// Open: the same instructions run at both sizes, as often as they should.
#include "common.cuh"
namespace shorter_when_large {
__global__ void __launch_bounds__(256) kernel(Gemm g, int step) {
  const int i = (blockIdx.x * 32 + threadIdx.x % 32) * step, j = blockIdx.y * 8 + threadIdx.x / 32;
  float sum = 0.0f;
#pragma unroll 8
  for (int p = 0; p < g.k; ++p) sum += g.A[i * g.k + p * step] * g.B[p * step + j * step * g.k];
  g.C[blockIdx.x * 32 + threadIdx.x % 32 + j * g.m] = sum;
}
inline void run(const Gemm& g) { kernel<<<dim3(g.m / 32, g.n / 8), 256>>>(g, g.m > 500 ? 0 : 1); }
}  // namespace shorter_when_large
