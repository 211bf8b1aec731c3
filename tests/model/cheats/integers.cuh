// Factors pass through integer logic that changes nothing, beside the FFMA.
// Open: integer lanes are priced, and still the most that is expected is 1.6 times what it reaches.
#include "common.cuh"
namespace integers {
struct Multiply {
  int zero;
  __device__ float operator()(float a, float b, float sum) const {
    const int x = (__float_as_int(a) ^ zero) + zero, y = (__float_as_int(b) + zero) ^ zero;
    return sum + __int_as_float(x) * __int_as_float(y);
  }
};
__global__ void __launch_bounds__(256) kernel(Gemm g, int zero) {
  tiled(g, PlainLoad(), Multiply{zero});
}
inline void run(const Gemm& g) { kernel<<<tiles(g), 256>>>(g, g.k & 31); }
}  // namespace integers
