// Every factor goes through two reciprocals, which issue as quickly as anything.
// Stopped by: the unit of special functions is 16 lanes wide.
#include "common.cuh"
namespace special_functions {
struct Multiply {
  __device__ float operator()(float a, float b, float sum) const {
    asm("{.reg .f32 t; rcp.approx.ftz.f32 t, %0; rcp.approx.ftz.f32 %0, t;}" : "+f"(a));
    return sum + a * b;
  }
};
__global__ void __launch_bounds__(256) kernel(Gemm g) { tiled(g, PlainLoad(), Multiply()); }
inline void run(const Gemm& g) { kernel<<<tiles(g), 256>>>(g); }
}  // namespace special_functions
