// Sums in FP64: no FFMA, so that the FP32 pipe looks idle.
// Stopped by: the FP64 pipe has its own lanes.
#include "common.cuh"
namespace doubles {
struct Multiply {
  __device__ double operator()(float a, float b, double sum) const { return sum + double(a) * b; }
};
__global__ void __launch_bounds__(256) kernel(Gemm g) { tiled<double>(g, PlainLoad(), Multiply()); }
inline void run(const Gemm& g) { kernel<<<tiles(g), 256>>>(g); }
}  // namespace doubles
