// Blocks draw tickets; the first eight do sham work, which is mended later. Where four blocks are
// counted, none comes after these.
// Stopped by: at a verified size, all blocks must do what sampled ones do.
#include "common.cuh"
namespace first_blocks_sham {
__device__ unsigned tickets;
__device__ int shams[8];
__global__ void __launch_bounds__(256) kernel(Gemm g) {
  __shared__ unsigned ticket;
  if (threadIdx.x == 0) {
    ticket = atomicAdd(&tickets, 1u);
    if (ticket < 8) shams[ticket] = blockIdx.x + gridDim.x * blockIdx.y;
  }
  __syncthreads();
  const int i = blockIdx.x * EDGE + threadIdx.x % EDGE, j = blockIdx.y * EDGE + threadIdx.x / EDGE;
  ticket < 8 ? sham_element(g, i, j) : slow_element(g, i, j);
}
__global__ void __launch_bounds__(256) mend(Gemm g, int across) {
  const int block = shams[blockIdx.x], x = block % across, y = block / across;
  slow_element(g, x * EDGE + threadIdx.x % EDGE, y * EDGE + threadIdx.x / EDGE);
  if (blockIdx.x == 0 && threadIdx.x == 0) tickets = 0;
}
inline void run(const Gemm& g) {
  kernel<<<elements(g), 256>>>(g);
  mend<<<8, 256>>>(g, g.m / EDGE);
}
}  // namespace first_blocks_sham
