// One block in four does the work of all four, on as many multiprocessors; a mean over blocks looks
// spread out.
// Stopped by: a launch takes no less than its heaviest block does on one multiprocessor.
#include "common.cuh"
namespace one_in_four {
__global__ void __launch_bounds__(256) kernel(Gemm g) {
  if (blockIdx.x % 4 != 2) return;
  const int i = blockIdx.x / 4 * 32 + threadIdx.x % 32;
  for (int j = threadIdx.x / 32; j < g.n; j += 8) slow_element(g, i, j);
}
inline void run(const Gemm& g) { kernel<<<dim3(g.m / 8), 256>>>(g); }
}  // namespace one_in_four
