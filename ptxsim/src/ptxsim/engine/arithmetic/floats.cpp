// float32 and float64.
#include "extremes.hpp"
#include "lanewise.hpp"

namespace sim {
namespace {

using f32 = float;
using f64 = double;

// .sat: NaN becomes 0.
f32 saturate(f32 v) { return v > 0.0f ? (v < 1.0f ? v : 1.0f) : 0.0f; }

// Two floats in one register.
f32 low(u64 a) { return bits_to_float(u32(a)); }
f32 high(u64 a) { return bits_to_float(u32(a >> 32)); }
u64 both(f32 low, f32 high) { return u64(float_to_bits(high)) << 32 | float_to_bits(low); }
template <class F> u64 pairwise(u64 a, u64 b, F f) {
  return both(f(low(a), low(b)), f(high(a), high(b)));
}

struct Tests { const char *finite, *infinite, *number, *nan, *normal, *subnormal; };
template <class T> void tests(Table& t, const Tests& n) {
  rarely(t, n.finite, [](T a) { return bool(std::isfinite(a)); });
  rarely(t, n.infinite, [](T a) { return bool(std::isinf(a)); });
  rarely(t, n.number, [](T a) { return !std::isnan(a); });
  rarely(t, n.nan, [](T a) { return bool(std::isnan(a)); });
  rarely(t, n.normal, [](T a) { return bool(std::isnormal(a)); });
  rarely(t, n.subnormal, [](T a) { return std::fpclassify(a) == FP_SUBNORMAL; });
}

}  // namespace

void add_floats(Table& t) {
  lanewise(t, "add.f32", [](f32 a, f32 b) { return a + b; });
  lanewise(t, "sub.f32", [](f32 a, f32 b) { return a - b; });
  lanewise(t, "mul.f32", [](f32 a, f32 b) { return a * b; });
  lanewise(t, "div.f32", [](f32 a, f32 b) { return a / b; });
  lanewise(t, "fma.f32", [](f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); });
  lanewise(t, "neg.f32", [](u32 a) { return a ^ 0x80000000u; });
  lanewise(t, "abs.f32", [](u32 a) { return a & 0x7fffffffu; });
  lanewise(t, "min.f32", [](f32 a, f32 b) { return least(a, b); });
  lanewise(t, "max.f32", [](f32 a, f32 b) { return most(a, b); });
  lanewise(t, "add.f64", [](f64 a, f64 b) { return a + b; });
  lanewise(t, "sub.f64", [](f64 a, f64 b) { return a - b; });
  lanewise(t, "mul.f64", [](f64 a, f64 b) { return a * b; });
  lanewise(t, "div.f64", [](f64 a, f64 b) { return a / b; });
  lanewise(t, "fma.f64", [](f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); });
  lanewise(t, "neg.f64", [](u64 a) { return a ^ u64{1} << 63; });
  lanewise(t, "abs.f64", [](u64 a) { return a & ~(u64{1} << 63); });
  lanewise(t, "min.f64", [](f64 a, f64 b) { return least(a, b); });
  lanewise(t, "max.f64", [](f64 a, f64 b) { return most(a, b); });
  lanewise(t, "add.sat.f32", [](f32 a, f32 b) { return saturate(a + b); });
  lanewise(t, "mul.sat.f32", [](f32 a, f32 b) { return saturate(a * b); });
  lanewise(t, "fma.sat.f32", [](f32 a, f32 b, f32 c) { return saturate(__builtin_fmaf(a, b, c)); });
  lanewise(t, "sat.f32", [](f32 a) { return saturate(a); });
  lanewise(t, "sat.f64", [](f64 a) { return a > 0 ? (a < 1 ? a : 1) : 0; });
  lanewise(t, "copysign.f32", [](f32 a, f32 b) { return std::copysign(b, a); });
  lanewise(t, "copysign.f64", [](f64 a, f64 b) { return std::copysign(b, a); });
  lanewise(t, "rcp.f32", [](f32 a) { return 1.0f / a; });
  lanewise(t, "rcp.f64", [](f64 a) { return 1.0 / a; });
  lanewise(t, "sqrt.f32", [](f32 a) { return std::sqrt(a); });
  lanewise(t, "sqrt.f64", [](f64 a) { return std::sqrt(a); });
  lanewise(t, "rsqrt.f32", [](f32 a) { return f32(1.0 / std::sqrt(f64(a))); });
  lanewise(t, "rsqrt.f64", [](f64 a) { return 1.0 / std::sqrt(a); });
  lanewise(t, "sin.f32", [](f32 a) { return f32(std::sin(f64(a))); });
  lanewise(t, "cos.f32", [](f32 a) { return f32(std::cos(f64(a))); });
  lanewise(t, "lg2.f32", [](f32 a) { return f32(std::log2(f64(a))); });
  lanewise(t, "ex2.f32", [](f32 a) { return f32(std::exp2(f64(a))); });
  lanewise(t, "tanh.f32", [](f32 a) { return f32(std::tanh(f64(a))); });
  tests<f32>(t, {"testp.finite.f32", "testp.infinite.f32", "testp.number.f32",
                 "testp.notanumber.f32", "testp.normal.f32", "testp.subnormal.f32"});
  tests<f64>(t, {"testp.finite.f64", "testp.infinite.f64", "testp.number.f64",
                 "testp.notanumber.f64", "testp.normal.f64", "testp.subnormal.f64"});
  lanewise(t, "min.NaN.f32", [](f32 a, f32 b) { return least_or_nan(a, b); });
  lanewise(t, "max.NaN.f32", [](f32 a, f32 b) { return most_or_nan(a, b); });
  lanewise(t, "add.f32x2",
           [](u64 a, u64 b) { return pairwise(a, b, [](f32 x, f32 y) { return x + y; }); });
  lanewise(t, "mul.f32x2",
           [](u64 a, u64 b) { return pairwise(a, b, [](f32 x, f32 y) { return x * y; }); });
  lanewise(t, "fma.f32x2", [](u64 a, u64 b, u64 c) {
    return both(__builtin_fmaf(low(a), low(b), low(c)), __builtin_fmaf(high(a), high(b), high(c)));
  });
}

void add_directed(Table& t) {
  rounded(t, {"add.rz.f32", "add.rm.f32", "add.rp.f32"}, [](f32 a, f32 b) { return a + b; });
  rounded(t, {"sub.rz.f32", "sub.rm.f32", "sub.rp.f32"}, [](f32 a, f32 b) { return a - b; });
  rounded(t, {"mul.rz.f32", "mul.rm.f32", "mul.rp.f32"}, [](f32 a, f32 b) { return a * b; });
  rounded(t, {"div.rz.f32", "div.rm.f32", "div.rp.f32"}, [](f32 a, f32 b) { return a / b; });
  rounded(t, {"fma.rz.f32", "fma.rm.f32", "fma.rp.f32"},
          [](f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); });
  rounded(t, {"rcp.rz.f32", "rcp.rm.f32", "rcp.rp.f32"}, [](f32 a) { return 1.0f / a; });
  rounded(t, {"sqrt.rz.f32", "sqrt.rm.f32", "sqrt.rp.f32"}, [](f32 a) { return std::sqrt(a); });
  rounded(t, {"add.rz.f64", "add.rm.f64", "add.rp.f64"}, [](f64 a, f64 b) { return a + b; });
  rounded(t, {"sub.rz.f64", "sub.rm.f64", "sub.rp.f64"}, [](f64 a, f64 b) { return a - b; });
  rounded(t, {"mul.rz.f64", "mul.rm.f64", "mul.rp.f64"}, [](f64 a, f64 b) { return a * b; });
  rounded(t, {"div.rz.f64", "div.rm.f64", "div.rp.f64"}, [](f64 a, f64 b) { return a / b; });
  rounded(t, {"fma.rz.f64", "fma.rm.f64", "fma.rp.f64"},
          [](f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); });
  rounded(t, {"rcp.rz.f64", "rcp.rm.f64", "rcp.rp.f64"}, [](f64 a) { return 1.0 / a; });
  rounded(t, {"sqrt.rz.f64", "sqrt.rm.f64", "sqrt.rp.f64"}, [](f64 a) { return std::sqrt(a); });
}

}  // namespace sim
