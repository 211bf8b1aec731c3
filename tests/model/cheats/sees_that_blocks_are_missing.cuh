// A first launch leaves a mark of every block; where marks are missing, the second does sham work.
// Stopped by: at a verified size, all blocks must do what sampled ones do.
#include "common.cuh"
namespace sees_that_blocks_are_missing {
__global__ void mark(int* marks) { marks[blockIdx.x] = 1; }
__global__ void __launch_bounds__(256) kernel(Gemm g, const int* marks) {
  const int i = blockIdx.x * EDGE + threadIdx.x % EDGE, j = blockIdx.y * EDGE + threadIdx.x / EDGE;
  const bool all = marks[0] && marks[1] && marks[2] && marks[3] && marks[4];
  all ? slow_element(g, i, j) : sham_element(g, i, j);
}
inline void run(const Gemm& g) {
  int* marks;
  cudaMallocAsync(&marks, 64 * sizeof(int), 0);
  mark<<<64, 32>>>(marks);
  kernel<<<elements(g), 256>>>(g, marks);
  cudaFreeAsync(marks, 0);
}
}  // namespace sees_that_blocks_are_missing
