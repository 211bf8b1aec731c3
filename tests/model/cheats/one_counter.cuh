// Every thread counts every step of K in one word, which is little work for each element of C.
// Stopped by: changes of one word follow one another, however many elements the output has.
#include "common.cuh"
namespace one_counter {
__device__ unsigned steps;
struct Load {
  __device__ float operator()(const float* p) const {
    atomicAdd(&steps, 1u + (threadIdx.x & 1));
    return *p;
  }
};
__global__ void __launch_bounds__(256) kernel(Gemm g) { tiled(g, Load(), PlainMultiply()); }
inline void run(const Gemm& g) { kernel<<<tiles(g), 256>>>(g); }
}  // namespace one_counter
