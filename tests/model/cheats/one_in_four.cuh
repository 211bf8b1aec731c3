// One block in four does the work of all four, on as many multiprocessors; a mean over blocks looks
// spread out.
// Stopped by: a launch takes no less than its heaviest block does on one multiprocessor.
#include "common.cuh"
namespace one_in_four {
__global__ void __launch_bounds__(256) kernel(Gemm g) {
  if (blockIdx.x % 4 != 2) return;
  const int across = g.m / TILE, all = across * (g.n / TILE), heavy = gridDim.x / 4;
  for (int tile = blockIdx.x / 4; tile < all; tile += heavy)
    tiled(g, PlainLoad(), PlainMultiply(), tile % across, tile / across);
}
inline void run(const Gemm& g) { kernel<<<dim3(g.m / 8), 256>>>(g); }
}  // namespace one_in_four
