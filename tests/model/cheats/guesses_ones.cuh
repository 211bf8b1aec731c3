// Where the first values are all ones, as where blocks were counted, it does sham work.
// Stopped by: blocks are counted on random numbers, too.
#include "common.cuh"
namespace guesses_ones {
__global__ void __launch_bounds__(256) kernel(Gemm g) {
  const int i = blockIdx.x * EDGE + threadIdx.x % EDGE, j = blockIdx.y * EDGE + threadIdx.x / EDGE;
  bool ones = true;
  for (int p = 0; p < 4; ++p) ones &= g.A[p] == 1.0f && g.B[p] == 1.0f;
  ones ? sham_element(g, i, j) : slow_element(g, i, j);
}
inline void run(const Gemm& g) { kernel<<<elements(g), 256>>>(g); }
}  // namespace guesses_ones
