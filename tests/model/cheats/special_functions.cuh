// Every product is moved by zero exponentials, which issue as quickly as anything.
// Stopped by: the unit of special functions is 16 lanes wide.
#include "common.cuh"
namespace special_functions {
struct Multiply {
  float zero;
  __device__ float operator()(float a, float b, float sum) const {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(b + a));
    return sum + (a + zero * power) * b;
  }
};
__global__ void __launch_bounds__(256) kernel(Gemm g, float zero) {
  tiled(g, PlainLoad(), Multiply{zero});
}
inline void run(const Gemm& g) { kernel<<<tiles(g), 256>>>(g, g.k & 31); }
}  // namespace special_functions
