// One block in hundreds, which is not sampled, does a twentieth of all work on its own.
// Open: four blocks of a launch do not tell of the others; where all alike leave out 2 %, or uneven
// ones 10 %, nothing is said.
#include "common.cuh"
namespace one_block_is_late {
__global__ void __launch_bounds__(256) kernel(Gemm g, int late) {
  const int block = blockIdx.x + gridDim.x * blockIdx.y;
  const int x = threadIdx.x % EDGE, y = threadIdx.x / EDGE;
  if (block < late && block) return;
  for (int each = block; each < (block ? block + 1 : late); ++each)
    slow_element(g, each % gridDim.x * EDGE + x, each / gridDim.x * EDGE + y);
}
inline void run(const Gemm& g) { kernel<<<elements(g), 256>>>(g, g.m / EDGE * (g.n / EDGE) / 64); }
}  // namespace one_block_is_late
