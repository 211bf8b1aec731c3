// Sums in an array whose index the compiler does not know: it lies in local memory, which costs
// instructions alone.
// Stopped by: local memory takes lines of the L1, and beyond its size the L2's and DRAM's bytes.
#include "common.cuh"
namespace local_arrays {
__global__ void __launch_bounds__(256) kernel(Gemm g, int turn) {
  const int i = blockIdx.x * 256 + threadIdx.x, j = blockIdx.y * 64;
  float sum[64] = {};
  for (int p = 0; p < g.k; ++p) {
    const float a = g.A[i * g.k + p];
    for (int c = 0; c < 64; ++c) sum[(c + turn) & 63] += a * g.B[p + (j + c) * g.k];
  }
  for (int c = 0; c < 64; ++c) g.C[i + (j + c) * g.m] = sum[(c + turn) & 63];
}
inline void run(const Gemm& g) { kernel<<<dim3(g.m / 256, g.n / 64), 256>>>(g, g.k & 31); }
}  // namespace local_arrays
