// One block in eight does the work of all eight; a mean over blocks looks spread out.
// Stopped by: a launch takes no less than its heaviest block does on one multiprocessor.
#include "common.cuh"
namespace one_in_eight {
__global__ void __launch_bounds__(256) kernel(Gemm g, int share) {
  if (blockIdx.x % share) return;
  const int i = blockIdx.x / share * EDGE + threadIdx.x % EDGE;
  for (int j = threadIdx.x / EDGE; j < g.n; j += EDGE) slow_element(g, i, j);
}
inline void run(const Gemm& g) { kernel<<<dim3(8 * (g.m / EDGE)), 256>>>(g, 8); }
}  // namespace one_in_eight
