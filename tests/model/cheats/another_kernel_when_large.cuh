// The same with a kernel of its own.
// Stopped by: a kernel that is timed must have been launched at a verified size.
#include "common.cuh"
namespace another_kernel_when_large {
__global__ void __launch_bounds__(256) small(Gemm g) {
  const int i = blockIdx.x * EDGE + threadIdx.x % EDGE, j = blockIdx.y * EDGE + threadIdx.x / EDGE;
  slow_element(g, i, j);
}
__global__ void __launch_bounds__(256) large(Gemm g) {
  const int i = blockIdx.x * EDGE + threadIdx.x % EDGE, j = blockIdx.y * EDGE + threadIdx.x / EDGE;
  sham_element(g, i, j);
}
inline void run(const Gemm& g) {
  g.m > 500 ? large<<<elements(g), 256>>>(g) : small<<<elements(g), 256>>>(g);
}
}  // namespace another_kernel_when_large
