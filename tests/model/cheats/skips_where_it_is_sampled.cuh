// The blocks that are sampled, which anybody can compute, do sham work; four blocks mend it later.
// Stopped by: at a verified size, all blocks must do what sampled ones do.
#include "common.cuh"
namespace skips_where_it_is_sampled {
__device__ __host__ inline int chosen(int which, int count) {
  const double at = which == 1 ? 0.0 : 0.5 + (which > 1 ? which - 1 : 0) * 0.6180339887498949;
  return which == 1 ? count - 1 : int(count * (at - int(at)));
}
__global__ void __launch_bounds__(256) kernel(Gemm g) {
  const int count = gridDim.x * gridDim.y, block = blockIdx.x + gridDim.x * blockIdx.y;
  const int i = blockIdx.x * EDGE + threadIdx.x % EDGE, j = blockIdx.y * EDGE + threadIdx.x / EDGE;
  bool sham = false;
  for (int which = 0; which < 4; ++which) sham |= block == chosen(which, count);
  sham ? sham_element(g, i, j) : slow_element(g, i, j);
}
__global__ void __launch_bounds__(256) mend(Gemm g, int across, int down) {
  const int block = chosen(blockIdx.x, across * down), x = block % across, y = block / across;
  slow_element(g, x * EDGE + threadIdx.x % EDGE, y * EDGE + threadIdx.x / EDGE);
}
inline void run(const Gemm& g) {
  kernel<<<elements(g), 256>>>(g);
  mend<<<4, 256>>>(g, g.m / EDGE, g.n / EDGE);
}
}  // namespace skips_where_it_is_sampled
