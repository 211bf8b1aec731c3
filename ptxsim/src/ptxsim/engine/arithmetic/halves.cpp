// Half precision: computed wide, rounded once.
#include "extremes.hpp"
#include "lanewise.hpp"

namespace sim {
namespace {

template <class F> u32 pairwise(u32 a, u32 b, F f) {
  return u32(f(u16(a), u16(b))) | u32(f(u16(a >> 16), u16(b >> 16))) << 16;
}
template <class F> u32 pairwise(u32 a, u32 b, u32 c, F f) {
  return u32(f(u16(a), u16(b), u16(c))) | u32(f(u16(a >> 16), u16(b >> 16), u16(c >> 16))) << 16;
}
double h(u16 a) { return float(Half{a}); }
double bf(u16 a) { return float(Bfloat{a}); }

// A double sum or product of bfloats may need two roundings on its way through float; round to
// odd in the first so that the second is right.
Bfloat bfloat_from(double v) {
  float f = float(v);
  if (double(f) != v && std::isfinite(f) && !(float_to_bits(f) & 1)) {
    f = bits_to_float(float_to_bits(f) + ((std::fabs(v) > std::fabs(double(f))) ? 1 : -1));
  }
  return to_bfloat(f);
}
u16 hadd(u16 a, u16 b) { return to_half(h(a) + h(b)).bits; }
u16 hsub(u16 a, u16 b) { return to_half(h(a) - h(b)).bits; }
u16 hmul(u16 a, u16 b) { return to_half(h(a) * h(b)).bits; }
u16 hfma(u16 a, u16 b, u16 c) { return to_half(h(a) * h(b) + h(c)).bits; }
u16 hmin(u16 a, u16 b) { return to_half(least(h(a), h(b))).bits; }
u16 hmax(u16 a, u16 b) { return to_half(most(h(a), h(b))).bits; }
u16 badd(u16 a, u16 b) { return bfloat_from(bf(a) + bf(b)).bits; }
u16 bsub(u16 a, u16 b) { return bfloat_from(bf(a) - bf(b)).bits; }
u16 bmul(u16 a, u16 b) { return bfloat_from(bf(a) * bf(b)).bits; }
u16 bfma(u16 a, u16 b, u16 c) { return bfloat_from(bf(a) * bf(b) + bf(c)).bits; }
u16 bmin(u16 a, u16 b) { return bfloat_from(least(bf(a), bf(b))).bits; }
u16 bmax(u16 a, u16 b) { return bfloat_from(most(bf(a), bf(b))).bits; }

double saturate(double v) { return v > 0 ? (v < 1 ? v : 1) : 0; }
double rectify(double v) { return std::isnan(v) || v > 0 ? v : 0; }
u16 hadd_sat(u16 a, u16 b) { return to_half(saturate(h(a) + h(b))).bits; }
u16 hsub_sat(u16 a, u16 b) { return to_half(saturate(h(a) - h(b))).bits; }
u16 hmul_sat(u16 a, u16 b) { return to_half(saturate(h(a) * h(b))).bits; }
u16 hfma_sat(u16 a, u16 b, u16 c) { return to_half(saturate(h(a) * h(b) + h(c))).bits; }
u16 hfma_relu(u16 a, u16 b, u16 c) { return to_half(rectify(h(a) * h(b) + h(c))).bits; }
u16 hmin_nan(u16 a, u16 b) { return to_half(least_or_nan(h(a), h(b))).bits; }
u16 hmax_nan(u16 a, u16 b) { return to_half(most_or_nan(h(a), h(b))).bits; }
u16 hsat(u16 a) { return to_half(saturate(h(a))).bits; }
u16 hrelu(u16 a) { return to_half(rectify(h(a))).bits; }
u16 brelu(u16 a) { return bfloat_from(rectify(bf(a))).bits; }
u16 hex2(u16 a) { return to_half(std::exp2(h(a))).bits; }
u16 htanh(u16 a) { return to_half(std::tanh(h(a))).bits; }
u16 bfma_relu(u16 a, u16 b, u16 c) { return bfloat_from(rectify(bf(a) * bf(b) + bf(c))).bits; }
u16 bmin_nan(u16 a, u16 b) { return bfloat_from(least_or_nan(bf(a), bf(b))).bits; }
u16 bmax_nan(u16 a, u16 b) { return bfloat_from(most_or_nan(bf(a), bf(b))).bits; }
u16 bex2(u16 a) { return bfloat_from(std::exp2(bf(a))).bits; }
u16 btanh(u16 a) { return bfloat_from(std::tanh(bf(a))).bits; }

template <auto f> void halves1(Table& t, const char* one, const char* two) {
  rarely(t, one, [](u16 a) { return f(a); });
  rarely(t, two, [](u32 a) { return u32(f(u16(a))) | u32(f(u16(a >> 16))) << 16; });
}
template <auto f> void halves(Table& t, const char* one, const char* two) {
  rarely(t, one, [](u16 a, u16 b) { return f(a, b); });
  rarely(t, two, [](u32 a, u32 b) { return pairwise(a, b, f); });
}
template <auto f> void halves3(Table& t, const char* one, const char* two) {
  rarely(t, one, [](u16 a, u16 b, u16 c) { return f(a, b, c); });
  rarely(t, two, [](u32 a, u32 b, u32 c) { return pairwise(a, b, c, f); });
}

}  // namespace

void add_halves(Table& t) {
  halves<hadd>(t, "add.f16", "add.f16x2");
  halves<hsub>(t, "sub.f16", "sub.f16x2");
  halves<hmul>(t, "mul.f16", "mul.f16x2");
  halves<hmin>(t, "min.f16", "min.f16x2");
  halves<hmax>(t, "max.f16", "max.f16x2");
  halves3<hfma>(t, "fma.f16", "fma.f16x2");
  halves<badd>(t, "add.bf16", "add.bf16x2");
  halves<bsub>(t, "sub.bf16", "sub.bf16x2");
  halves<bmul>(t, "mul.bf16", "mul.bf16x2");
  halves<bmin>(t, "min.bf16", "min.bf16x2");
  halves<bmax>(t, "max.bf16", "max.bf16x2");
  halves3<bfma>(t, "fma.bf16", "fma.bf16x2");
  halves<hadd_sat>(t, "add.sat.f16", "add.sat.f16x2");
  halves<hsub_sat>(t, "sub.sat.f16", "sub.sat.f16x2");
  halves<hmul_sat>(t, "mul.sat.f16", "mul.sat.f16x2");
  halves3<hfma_sat>(t, "fma.sat.f16", "fma.sat.f16x2");
  halves3<hfma_relu>(t, "fma.relu.f16", "fma.relu.f16x2");
  halves3<bfma_relu>(t, "fma.relu.bf16", "fma.relu.bf16x2");
  halves<hmin_nan>(t, "min.NaN.f16", "min.NaN.f16x2");
  halves<hmax_nan>(t, "max.NaN.f16", "max.NaN.f16x2");
  halves<bmin_nan>(t, "min.NaN.bf16", "min.NaN.bf16x2");
  halves<bmax_nan>(t, "max.NaN.bf16", "max.NaN.bf16x2");
  halves1<hsat>(t, "sat.f16", "sat.f16x2");
  halves1<hrelu>(t, "relu.f16", "relu.f16x2");
  halves1<brelu>(t, "relu.bf16", "relu.bf16x2");
  halves1<hex2>(t, "ex2.f16", "ex2.f16x2");
  halves1<htanh>(t, "tanh.f16", "tanh.f16x2");
  halves1<bex2>(t, "ex2.bf16", "ex2.bf16x2");
  halves1<btanh>(t, "tanh.bf16", "tanh.bf16x2");
  for (const char* name : {"neg.f16", "neg.bf16"})
    rarely(t, name, [](u16 a) { return u16(a ^ 0x8000); });
  for (const char* name : {"abs.f16", "abs.bf16"})
    rarely(t, name, [](u16 a) { return u16(a & 0x7fff); });
  for (const char* name : {"neg.f16x2", "neg.bf16x2"})
    rarely(t, name, [](u32 a) { return a ^ 0x80008000u; });
  for (const char* name : {"abs.f16x2", "abs.bf16x2"})
    rarely(t, name, [](u32 a) { return a & 0x7fff7fffu; });
}

}  // namespace sim
