// Sizes that only a GPU would verify get sham work, and a wrong result.
// Stopped by: what runs at the timed size must have run at a verified one.
#include "common.cuh"
namespace sham_when_large {
__global__ void __launch_bounds__(256) kernel(Gemm g) {
  const int i = blockIdx.x * EDGE + threadIdx.x % EDGE, j = blockIdx.y * EDGE + threadIdx.x / EDGE;
  g.m > 500 ? sham_element(g, i, j) : slow_element(g, i, j);
}
inline void run(const Gemm& g) { kernel<<<elements(g), 256>>>(g); }
}  // namespace sham_when_large
