// Integer, float and logic operations, named as PTX names them once modifiers that do not change
// the result are dropped (lower.py does that).
#include <algorithm>
#include <bit>
#include <functional>

#include "lanewise.hpp"

namespace sim {
namespace {

using f32 = float;
using f64 = double;
using i128 = __int128;
using u128 = unsigned __int128;

// A number wins over NaN; -0 is less than +0.
template <class T> T least(T a, T b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
template <class T> T most(T a, T b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}

// .sat: NaN becomes 0.
f32 saturate(f32 v) { return v > 0.0f ? (v < 1.0f ? v : 1.0f) : 0.0f; }

// As least and most, but NaN wins.
template <class T> T least_or_nan(T a, T b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : least(a, b);
}
template <class T> T most_or_nan(T a, T b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : most(a, b);
}

// --- float32 and float64

// Two floats in one register.
f32 low(u64 a) { return bits_to_float(u32(a)); }
f32 high(u64 a) { return bits_to_float(u32(a >> 32)); }
u64 both(f32 low, f32 high) { return u64(float_to_bits(high)) << 32 | float_to_bits(low); }
template <class F> u64 pairwise(u64 a, u64 b, F f) {
  return both(f(low(a), low(b)), f(high(a), high(b)));
}

struct Tests { const char *finite, *infinite, *number, *nan, *normal, *subnormal; };
template <class T> void tests(Table& t, const Tests& n) {
  lanewise(t, n.finite, [](T a) { return bool(std::isfinite(a)); });
  lanewise(t, n.infinite, [](T a) { return bool(std::isinf(a)); });
  lanewise(t, n.number, [](T a) { return !std::isnan(a); });
  lanewise(t, n.nan, [](T a) { return bool(std::isnan(a)); });
  lanewise(t, n.normal, [](T a) { return bool(std::isnormal(a)); });
  lanewise(t, n.subnormal, [](T a) { return std::fpclassify(a) == FP_SUBNORMAL; });
}

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

// --- half precision: computed wide, rounded once

struct Pair { u16 low, high; };
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
  lanewise(t, one, [](u16 a) { return f(a); });
  lanewise(t, two, [](u32 a) { return u32(f(u16(a))) | u32(f(u16(a >> 16))) << 16; });
}
template <auto f> void halves(Table& t, const char* one, const char* two) {
  lanewise(t, one, [](u16 a, u16 b) { return f(a, b); });
  lanewise(t, two, [](u32 a, u32 b) { return pairwise(a, b, f); });
}
template <auto f> void halves3(Table& t, const char* one, const char* two) {
  lanewise(t, one, [](u16 a, u16 b, u16 c) { return f(a, b, c); });
  lanewise(t, two, [](u32 a, u32 b, u32 c) { return pairwise(a, b, c, f); });
}

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
    lanewise(t, name, [](u16 a) { return u16(a ^ 0x8000); });
  for (const char* name : {"abs.f16", "abs.bf16"})
    lanewise(t, name, [](u16 a) { return u16(a & 0x7fff); });
  for (const char* name : {"neg.f16x2", "neg.bf16x2"})
    lanewise(t, name, [](u32 a) { return a ^ 0x80008000u; });
  for (const char* name : {"abs.f16x2", "abs.bf16x2"})
    lanewise(t, name, [](u32 a) { return a & 0x7fff7fffu; });
}

// --- integers

u32 multiply_high(u32 a, u32 b) { return u64(a) * b >> 32; }
i32 multiply_high(i32 a, i32 b) { return i64(a) * b >> 32; }
u64 multiply_high(u64 a, u64 b) { return u128(a) * b >> 64; }
i64 multiply_high(i64 a, i64 b) { return i128(a) * b >> 64; }
u16 multiply_high(u16 a, u16 b) { return u32(a) * b >> 16; }
i16 multiply_high(i16 a, i16 b) { return i32(a) * b >> 16; }

// Division by zero is undefined in PTX; GPUs return all ones.
template <class T> T quotient(T a, T b) {
  if (b == 0) return T(-1);
  if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) return T(0 - std::make_unsigned_t<T>(a));
  }
  return a / b;
}
template <class T> T remainder_of(T a, T b) {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) return 0;
  }
  return a % b;
}
template <class T> T shift_left(T a, u32 b) { return b >= sizeof(T) * 8 ? T(0) : T(a << b); }
template <class T> T shift_right(T a, u32 b) {
  constexpr u32 bits = sizeof(T) * 8;
  if constexpr (std::is_signed_v<T>) return T(a >> std::min(b, bits - 1));
  else return b >= bits ? T(0) : T(a >> b);
}

template <class T> T extract(T a, u32 b, u32 c) {
  constexpr u32 bits = sizeof(T) * 8;
  using U = std::make_unsigned_t<T>;
  const u32 pos = b & 255, len = c & 255;
  if (!len) return 0;
  U field = pos >= bits ? U(0) : U(U(a) >> pos);
  const u32 have = std::min(len, pos >= bits ? 0 : bits - pos);  // bits of the field that a has
  if (have < bits) field &= (U(1) << have) - 1;
  if constexpr (std::is_signed_v<T>) {
    if (have < bits && U(a) >> std::min(pos + len - 1, bits - 1) & 1) field |= ~U(0) << have;
  }
  return T(field);
}
template <class T> T insert(T a, T b, u32 c, u32 d) {
  constexpr u32 bits = sizeof(T) * 8;
  u32 pos = c & 255, len = d & 255;
  for (u32 k = 0; k < len && pos + k < bits; ++k)
    b = (b & ~(T(1) << (pos + k))) | ((k < bits ? a >> k & 1 : T(0)) << (pos + k));
  return b;
}
template <class T> u32 find_high(T a, bool amount) {
  using U = std::make_unsigned_t<T>;
  U v = U(a);
  if constexpr (std::is_signed_v<T>) {
    if (a < 0) v = ~v;
  }
  if (!v) return ~0u;
  u32 zeros = std::countl_zero(v);
  return amount ? zeros : sizeof(T) * 8 - 1 - zeros;
}
u32 reverse(u32 a) {
  u32 r = 0;
  for (int k = 0; k < 32; ++k) r |= (a >> k & 1) << (31 - k);
  return r;
}
u32 permute(u32 a, u32 b, u32 selector) {
  u64 bytes = u64(b) << 32 | a;
  u32 r = 0;
  for (int k = 0; k < 4; ++k) {
    u32 s = selector >> 4 * k & 15;
    u8 byte = bytes >> 8 * (s & 7);
    if (s & 8) byte = byte & 0x80 ? 0xff : 0;
    r |= u32(byte) << 8 * k;
  }
  return r;
}
// Two integers of 16 bits in one register.
template <class T, class F> u32 two(u32 a, u32 b, F f) {
  const auto low = u16(f(T(a), T(b))), high = u16(f(T(a >> 16), T(b >> 16)));
  return u32(high) << 16 | low;
}
struct Lesser {
  template <class T> T operator()(T a, T b) const { return std::min(a, b); }
};
struct Greater {
  template <class T> T operator()(T a, T b) const { return std::max(a, b); }
};

// prmt with a mode: it makes the selector of two bits into one that picks each byte.
u32 picks(u32 selector, char mode) {
  const u32 at = selector & 3;
  u32 four = 0;
  for (u32 k = 0; k < 4; ++k) {
    const u32 byte = mode == 'f'   ? at + k                   // .f4e
                     : mode == 'b' ? (at - k) & 7             // .b4e
                     : mode == '8' ? at                       // .rc8
                     : mode == 'l' ? std::max(at, k)          // .ecl
                     : mode == 'r' ? std::min(at, k)          // .ecr
                                   : (at & 1) * 2 + (k & 1);  // .rc16
    four |= byte << 4 * k;
  }
  return four;
}
i32 clamp(i64 v) { return i32(std::clamp<i64>(v, INT32_MIN, INT32_MAX)); }
u32 nth_set(u32 mask, u32 base, i32 offset) {
  const i32 step = offset < 0 ? -1 : 1;
  i64 left = offset == 0 ? 1 : std::abs(i64(offset));
  for (i32 at = i32(base); at >= 0 && at < 32; at += offset == 0 ? 32 : step)
    if (mask >> at & 1 && --left == 0) return u32(at);
  return ~0u;
}
template <class A, class B, int from> u32 dot2(u32 a, u32 b, u32 c) {
  for (int k = 0; k < 2; ++k) c += u32(i32(A(a >> 16 * k))) * u32(i32(B(b >> 8 * (k + from))));
  return c;
}
u32 byte_distances(u32 a, u32 b) {
  u32 all = 0;
  for (int k = 0; k < 4; ++k)
    all |= u32(std::abs(i32(u8(a >> 8 * k)) - i32(u8(b >> 8 * k)))) << 8 * k;
  return all;
}
template <class A, class B> u32 dot4(u32 a, u32 b, u32 c) {
  for (int k = 0; k < 4; ++k) c += u32(i32(A(a >> 8 * k)) * i32(B(b >> 8 * k)));
  return c;
}

template <class T> struct Names {
  const char *add, *sub, *low, *high, *mad, *mad_high, *div, *rem, *min, *max, *neg, *abs, *shr;
};

template <class T> void integer(Table& t, const Names<T>& n) {
  using U = std::make_unsigned_t<T>;
  lanewise(t, n.add, [](U a, U b) { return U(a + b); });
  lanewise(t, n.sub, [](U a, U b) { return U(a - b); });
  lanewise(t, n.low, [](U a, U b) { return U(u64(a) * u64(b)); });
  lanewise(t, n.high, [](T a, T b) { return multiply_high(a, b); });
  lanewise(t, n.mad, [](U a, U b, U c) { return U(u64(a) * u64(b) + u64(c)); });
  lanewise(t, n.mad_high, [](T a, T b, U c) { return U(U(multiply_high(a, b)) + c); });
  lanewise(t, n.div, [](T a, T b) { return quotient(a, b); });
  lanewise(t, n.rem, [](T a, T b) { return remainder_of(a, b); });
  lanewise(t, n.min, [](T a, T b) { return std::min(a, b); });
  lanewise(t, n.max, [](T a, T b) { return std::max(a, b); });
  lanewise(t, n.neg, [](U a) { return U(0 - a); });
  lanewise(t, n.abs, [](T a) { return a < 0 ? U(0 - U(a)) : U(a); });
  lanewise(t, n.shr, [](T a, u32 b) { return shift_right(a, b); });
}

void add_integers(Table& t) {
#define NAMES(s)                                                                     \
  {"add." s, "sub." s, "mul.lo." s, "mul.hi." s, "mad.lo." s, "mad.hi." s, "div." s, \
   "rem." s, "min." s, "max." s,    "neg." s,    "abs." s,    "shr." s}
  integer<i16>(t, NAMES("s16"));
  integer<u16>(t, NAMES("u16"));
  integer<i32>(t, NAMES("s32"));
  integer<u32>(t, NAMES("u32"));
  integer<i64>(t, NAMES("s64"));
  integer<u64>(t, NAMES("u64"));
#undef NAMES
  lanewise(t, "mul.wide.s16", [](i16 a, i16 b) { return i32(a) * b; });
  lanewise(t, "mul.wide.u16", [](u16 a, u16 b) { return u32(a) * b; });
  lanewise(t, "mul.wide.s32", [](i32 a, i32 b) { return i64(a) * b; });
  lanewise(t, "mul.wide.u32", [](u32 a, u32 b) { return u64(a) * b; });
  lanewise(t, "mad.wide.s16", [](i16 a, i16 b, u32 c) { return u32(i32(a) * b) + c; });
  lanewise(t, "mad.wide.u16", [](u16 a, u16 b, u32 c) { return u32(a) * b + c; });
  lanewise(t, "mad.wide.s32", [](i32 a, i32 b, u64 c) { return u64(i64(a) * b) + c; });
  lanewise(t, "mad.wide.u32", [](u32 a, u32 b, u64 c) { return u64(a) * b + c; });
  lanewise(t, "mul24.lo.s32", [](i32 a, i32 b) { return u32(i64(a << 8 >> 8) * (b << 8 >> 8)); });
  lanewise(t, "mul24.lo.u32", [](u32 a, u32 b) { return u32(u64(a & 0xffffff) * (b & 0xffffff)); });
  lanewise(t, "mul24.hi.s32",
           [](i32 a, i32 b) { return i32(i64(a << 8 >> 8) * (b << 8 >> 8) >> 16); });
  lanewise(t, "mul24.hi.u32",
           [](u32 a, u32 b) { return u32(u64(a & 0xffffff) * (b & 0xffffff) >> 16); });
  lanewise(t, "mad24.lo.s32",
           [](i32 a, i32 b, u32 c) { return u32(i64(a << 8 >> 8) * (b << 8 >> 8)) + c; });
  lanewise(t, "mad24.lo.u32",
           [](u32 a, u32 b, u32 c) { return u32(u64(a & 0xffffff) * (b & 0xffffff)) + c; });
  lanewise(t, "add.sat.s32", [](i32 a, i32 b) { return clamp(i64(a) + b); });
  lanewise(t, "sub.sat.s32", [](i32 a, i32 b) { return clamp(i64(a) - b); });
  lanewise(t, "min.relu.s32", [](i32 a, i32 b) { return std::max(0, std::min(a, b)); });
  lanewise(t, "max.relu.s32", [](i32 a, i32 b) { return std::max(0, std::max(a, b)); });
  lanewise(t, "sad.u16", [](u16 a, u16 b, u16 c) { return u16(c + (a < b ? b - a : a - b)); });
  lanewise(t, "sad.s16", [](i16 a, i16 b, u16 c) { return u16(c + (a < b ? b - a : a - b)); });
  lanewise(t, "sad.u64", [](u64 a, u64 b, u64 c) { return c + (a < b ? b - a : a - b); });
  lanewise(t, "sad.s64",
           [](i64 a, i64 b, u64 c) { return c + (a < b ? u64(b) - u64(a) : u64(a) - u64(b)); });
  lanewise(t, "sad.u32", [](u32 a, u32 b, u32 c) { return c + (a < b ? b - a : a - b); });
  lanewise(t, "sad.s32",
           [](i32 a, i32 b, u32 c) { return c + (a < b ? u32(b) - u32(a) : u32(a) - u32(b)); });
  lanewise(t, "add.u16x2", [](u32 a, u32 b) { return two<u16>(a, b, std::plus<>{}); });
  lanewise(t, "add.s16x2", [](u32 a, u32 b) { return two<u16>(a, b, std::plus<>{}); });
  lanewise(t, "min.u16x2", [](u32 a, u32 b) { return two<u16>(a, b, Lesser{}); });
  lanewise(t, "min.s16x2", [](u32 a, u32 b) { return two<i16>(a, b, Lesser{}); });
  lanewise(t, "max.u16x2", [](u32 a, u32 b) { return two<u16>(a, b, Greater{}); });
  lanewise(t, "max.s16x2", [](u32 a, u32 b) { return two<i16>(a, b, Greater{}); });
  lanewise(t, "shl.b16", [](u16 a, u32 b) { return shift_left(a, b); });
  lanewise(t, "shl.b32", [](u32 a, u32 b) { return shift_left(a, b); });
  lanewise(t, "shl.b64", [](u64 a, u32 b) { return shift_left(a, b); });
  lanewise(t, "shf.l.clamp.b32", [](u32 a, u32 b, u32 c) {
    c = std::min(c, 32u);
    return u32((u64(b) << 32 | a) << c >> 32);
  });
  lanewise(t, "shf.l.wrap.b32",
           [](u32 a, u32 b, u32 c) { return u32((u64(b) << 32 | a) << (c & 31) >> 32); });
  lanewise(t, "shf.r.clamp.b32",
           [](u32 a, u32 b, u32 c) { return u32((u64(b) << 32 | a) >> std::min(c, 32u)); });
  lanewise(t, "shf.r.wrap.b32",
           [](u32 a, u32 b, u32 c) { return u32((u64(b) << 32 | a) >> (c & 31)); });
  lanewise(t, "popc.b32", [](u32 a) { return u32(std::popcount(a)); });
  lanewise(t, "popc.b64", [](u64 a) { return u32(std::popcount(a)); });
  lanewise(t, "clz.b32", [](u32 a) { return u32(std::countl_zero(a)); });
  lanewise(t, "clz.b64", [](u64 a) { return u32(std::countl_zero(a)); });
  lanewise(t, "brev.b32", [](u32 a) { return reverse(a); });
  lanewise(t, "brev.b64", [](u64 a) { return u64(reverse(u32(a))) << 32 | reverse(u32(a >> 32)); });
  lanewise(t, "bfind.u32", [](u32 a) { return find_high(a, false); });
  lanewise(t, "bfind.s32", [](i32 a) { return find_high(a, false); });
  lanewise(t, "bfind.u64", [](u64 a) { return find_high(a, false); });
  lanewise(t, "bfind.s64", [](i64 a) { return find_high(a, false); });
  lanewise(t, "bfind.shiftamt.u32", [](u32 a) { return find_high(a, true); });
  lanewise(t, "bfind.shiftamt.s32", [](i32 a) { return find_high(a, true); });
  lanewise(t, "bfind.shiftamt.u64", [](u64 a) { return find_high(a, true); });
  lanewise(t, "bfind.shiftamt.s64", [](i64 a) { return find_high(a, true); });
  lanewise(t, "bfe.u32", [](u32 a, u32 b, u32 c) { return extract(a, b, c); });
  lanewise(t, "bfe.s32", [](i32 a, u32 b, u32 c) { return extract(a, b, c); });
  lanewise(t, "bfe.u64", [](u64 a, u32 b, u32 c) { return extract(a, b, c); });
  lanewise(t, "bfe.s64", [](i64 a, u32 b, u32 c) { return extract(a, b, c); });
  lanewise(t, "bfi.b32", [](u32 a, u32 b, u32 c, u32 d) { return insert(a, b, c, d); });
  lanewise(t, "bfi.b64", [](u64 a, u64 b, u32 c, u32 d) { return insert(a, b, c, d); });
  lanewise(t, "bmsk.clamp.b32",
           [](u32 a, u32 b) { return a >= 32 ? 0u : (b >= 32 ? ~0u : (1u << b) - 1) << a; });
  lanewise(t, "bmsk.wrap.b32", [](u32 a, u32 b) { return ((1u << (b & 31)) - 1) << (a & 31); });
  lanewise(t, "szext.wrap.s32", [](i32 a, u32 b) {
    b &= 31;
    return b ? i32(u32(a) << (32 - b)) >> (32 - b) : 0;
  });
  lanewise(t, "szext.wrap.u32", [](u32 a, u32 b) {
    b &= 31;
    return b ? a << (32 - b) >> (32 - b) : 0u;
  });
  lanewise(t, "prmt.b32", [](u32 a, u32 b, u32 c) { return permute(a, b, c); });
  lanewise(t, "prmt.f4e.b32", [](u32 a, u32 b, u32 c) { return permute(a, b, picks(c, 'f')); });
  lanewise(t, "prmt.b4e.b32", [](u32 a, u32 b, u32 c) { return permute(a, b, picks(c, 'b')); });
  lanewise(t, "prmt.rc8.b32", [](u32 a, u32 b, u32 c) { return permute(a, b, picks(c, '8')); });
  lanewise(t, "prmt.ecl.b32", [](u32 a, u32 b, u32 c) { return permute(a, b, picks(c, 'l')); });
  lanewise(t, "prmt.ecr.b32", [](u32 a, u32 b, u32 c) { return permute(a, b, picks(c, 'r')); });
  lanewise(t, "prmt.rc16.b32", [](u32 a, u32 b, u32 c) { return permute(a, b, picks(c, '6')); });
  lanewise(t, "fns.b32", [](u32 a, u32 b, i32 c) { return nth_set(a, b, c); });
  lanewise(t, "vabsdiff4.u32.u32.u32", [](u32 a, u32 b, u32) { return byte_distances(a, b); });
  lanewise(t, "dp2a.lo.s32.s32", [](u32 a, u32 b, u32 c) { return dot2<i16, i8, 0>(a, b, c); });
  lanewise(t, "dp2a.lo.s32.u32", [](u32 a, u32 b, u32 c) { return dot2<i16, u8, 0>(a, b, c); });
  lanewise(t, "dp2a.lo.u32.s32", [](u32 a, u32 b, u32 c) { return dot2<u16, i8, 0>(a, b, c); });
  lanewise(t, "dp2a.lo.u32.u32", [](u32 a, u32 b, u32 c) { return dot2<u16, u8, 0>(a, b, c); });
  lanewise(t, "dp2a.hi.s32.s32", [](u32 a, u32 b, u32 c) { return dot2<i16, i8, 2>(a, b, c); });
  lanewise(t, "dp2a.hi.s32.u32", [](u32 a, u32 b, u32 c) { return dot2<i16, u8, 2>(a, b, c); });
  lanewise(t, "dp2a.hi.u32.s32", [](u32 a, u32 b, u32 c) { return dot2<u16, i8, 2>(a, b, c); });
  lanewise(t, "dp2a.hi.u32.u32", [](u32 a, u32 b, u32 c) { return dot2<u16, u8, 2>(a, b, c); });
  lanewise(t, "dp4a.s32.s32", [](u32 a, u32 b, u32 c) { return dot4<i8, i8>(a, b, c); });
  lanewise(t, "dp4a.u32.u32", [](u32 a, u32 b, u32 c) { return dot4<u8, u8>(a, b, c); });
  lanewise(t, "dp4a.s32.u32", [](u32 a, u32 b, u32 c) { return dot4<i8, u8>(a, b, c); });
  lanewise(t, "dp4a.u32.s32", [](u32 a, u32 b, u32 c) { return dot4<u8, i8>(a, b, c); });
}

// --- logic, selection, comparison

template <class T> T lop3(T a, T b, T c, int table) {
  T r = 0;
  if (table & 1) r |= ~a & ~b & ~c;
  if (table & 2) r |= ~a & ~b & c;
  if (table & 4) r |= ~a & b & ~c;
  if (table & 8) r |= ~a & b & c;
  if (table & 16) r |= a & ~b & ~c;
  if (table & 32) r |= a & ~b & c;
  if (table & 64) r |= a & b & ~c;
  if (table & 128) r |= a & b & c;
  return r;
}
Flow run_lop3(Warp& w, const Ins& i) {
  u32 *d = lanes<u32>(w, i.output()), *a = lanes<u32>(w, i.input(0)),
      *b = lanes<u32>(w, i.input(1)), *c = lanes<u32>(w, i.input(2));
  const int table = i.truth_table();
  for (int l = 0; l < LANES; ++l)
    if (w.exec >> l & 1) d[l] = lop3(a[l], b[l], c[l], table);
  return Flow::next;
}

void add_logic(Table& t) {
  lanewise(t, "mov.b16", [](u16 a) { return a; });
  lanewise(t, "mov.b32", [](u32 a) { return a; });
  lanewise(t, "mov.b64", [](u64 a) { return a; });
  lanewise(t, "mov.pred", [](bool a) { return a; });
  lanewise(t, "and.b16", [](u16 a, u16 b) { return u16(a & b); });
  lanewise(t, "or.b16", [](u16 a, u16 b) { return u16(a | b); });
  lanewise(t, "xor.b16", [](u16 a, u16 b) { return u16(a ^ b); });
  lanewise(t, "not.b16", [](u16 a) { return u16(~a); });
  lanewise(t, "and.b32", [](u32 a, u32 b) { return a & b; });
  lanewise(t, "or.b32", [](u32 a, u32 b) { return a | b; });
  lanewise(t, "xor.b32", [](u32 a, u32 b) { return a ^ b; });
  lanewise(t, "not.b32", [](u32 a) { return ~a; });
  lanewise(t, "cnot.b16", [](u16 a) { return u16(a == 0); });
  lanewise(t, "cnot.b64", [](u64 a) { return u64(a == 0); });
  lanewise(t, "cnot.b32", [](u32 a) { return u32(a == 0); });
  lanewise(t, "and.b64", [](u64 a, u64 b) { return a & b; });
  lanewise(t, "or.b64", [](u64 a, u64 b) { return a | b; });
  lanewise(t, "xor.b64", [](u64 a, u64 b) { return a ^ b; });
  lanewise(t, "not.b64", [](u64 a) { return ~a; });
  lanewise(t, "and.pred", [](bool a, bool b) { return a && b; });
  lanewise(t, "or.pred", [](bool a, bool b) { return a || b; });
  lanewise(t, "xor.pred", [](bool a, bool b) { return a != b; });
  lanewise(t, "not.pred", [](bool a) { return !a; });
  t.push_back({"lop3.b32", run_lop3, "n>nnn"});
  lanewise(t, "selp.b16", [](u16 a, u16 b, bool p) { return p ? a : b; });
  lanewise(t, "selp.b32", [](u32 a, u32 b, bool p) { return p ? a : b; });
  lanewise(t, "selp.b64", [](u64 a, u64 b, bool p) { return p ? a : b; });
  lanewise(t, "slct.b32.s32", [](u32 a, u32 b, i32 c) { return c >= 0 ? a : b; });
  lanewise(t, "slct.b32.f32", [](u32 a, u32 b, f32 c) { return c >= 0 ? a : b; });
  lanewise(t, "slct.b16.s32", [](u16 a, u16 b, i32 c) { return c >= 0 ? a : b; });
  lanewise(t, "slct.b16.f32", [](u16 a, u16 b, f32 c) { return c >= 0 ? a : b; });
  lanewise(t, "slct.b64.f32", [](u64 a, u64 b, f32 c) { return c >= 0 ? a : b; });
  lanewise(t, "slct.b64.s32", [](u64 a, u64 b, i32 c) { return c >= 0 ? a : b; });
}

template <class T> struct Comparisons { const char *eq, *ne, *lt, *le, *gt, *ge; };
template <class T> void integer_comparisons(Table& t, const Comparisons<T>& n) {
  lanewise(t, n.eq, [](T a, T b) { return a == b; });
  lanewise(t, n.ne, [](T a, T b) { return a != b; });
  lanewise(t, n.lt, [](T a, T b) { return a < b; });
  lanewise(t, n.le, [](T a, T b) { return a <= b; });
  lanewise(t, n.gt, [](T a, T b) { return a > b; });
  lanewise(t, n.ge, [](T a, T b) { return a >= b; });
}
template <class T> auto wide(T v) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>) return float(v);
  else return v;
}
template <class T> struct FloatComparisons {
  const char *eq, *ne, *lt, *le, *gt, *ge, *equ, *neu, *ltu, *leu, *gtu, *geu, *num, *nan;
};
template <class T> void float_comparisons(Table& t, const FloatComparisons<T>& n) {
  lanewise(t, n.eq, [](T a, T b) { return wide(a) == wide(b); });
  lanewise(t, n.ne, [](T a, T b) { return wide(a) < wide(b) || wide(a) > wide(b); });
  lanewise(t, n.lt, [](T a, T b) { return wide(a) < wide(b); });
  lanewise(t, n.le, [](T a, T b) { return wide(a) <= wide(b); });
  lanewise(t, n.gt, [](T a, T b) { return wide(a) > wide(b); });
  lanewise(t, n.ge, [](T a, T b) { return wide(a) >= wide(b); });
  lanewise(t, n.equ, [](T a, T b) { return !(wide(a) < wide(b) || wide(a) > wide(b)); });
  lanewise(t, n.neu, [](T a, T b) { return !(wide(a) == wide(b)); });
  lanewise(t, n.ltu, [](T a, T b) { return !(wide(a) >= wide(b)); });
  lanewise(t, n.leu, [](T a, T b) { return !(wide(a) > wide(b)); });
  lanewise(t, n.gtu, [](T a, T b) { return !(wide(a) <= wide(b)); });
  lanewise(t, n.geu, [](T a, T b) { return !(wide(a) < wide(b)); });
  lanewise(t, n.num, [](T a, T b) { return wide(a) == wide(a) && wide(b) == wide(b); });
  lanewise(t, n.nan, [](T a, T b) { return !(wide(a) == wide(a) && wide(b) == wide(b)); });
}

void add_comparisons(Table& t) {
#define NAMES(s) \
  {"setp.eq." s, "setp.ne." s, "setp.lt." s, "setp.le." s, "setp.gt." s, "setp.ge." s}
  integer_comparisons<i16>(t, NAMES("s16"));
  integer_comparisons<u16>(t, NAMES("u16"));
  integer_comparisons<i32>(t, NAMES("s32"));
  integer_comparisons<u32>(t, NAMES("u32"));
  integer_comparisons<i64>(t, NAMES("s64"));
  integer_comparisons<u64>(t, NAMES("u64"));
#undef NAMES
#define NAMES(s)                                                              \
  {"setp.eq." s,  "setp.ne." s,  "setp.lt." s,  "setp.le." s,  "setp.gt." s,  \
   "setp.ge." s,  "setp.equ." s, "setp.neu." s, "setp.ltu." s, "setp.leu." s, \
   "setp.gtu." s, "setp.geu." s, "setp.num." s, "setp.nan." s}
  float_comparisons<f32>(t, NAMES("f32"));
  float_comparisons<f64>(t, NAMES("f64"));
  float_comparisons<Half>(t, NAMES("f16"));
  float_comparisons<Bfloat>(t, NAMES("bf16"));
#undef NAMES
}

// --- carries

template <bool read, bool write, bool subtract, class T> Flow carry(Warp& w, const Ins& i) {
  T *d = lanes<T>(w, i.output()), *a = lanes<T>(w, i.input(0)), *b = lanes<T>(w, i.input(1));
  for (int l = 0; l < LANES; ++l) {
    if (!(w.exec >> l & 1)) continue;
    u32 in = read ? w.cc >> l & 1 : 0;
    u128 wide_result = subtract ? u128(a[l]) - b[l] - in : u128(a[l]) + b[l] + in;
    if (write) w.cc = (w.cc & ~(1u << l)) | u32(wide_result >> sizeof(T) * 8 & 1) << l;
    d[l] = T(wide_result);
  }
  return Flow::next;
}

// mad and madc: d = low or high half of a · b, + c, + the carry; .cc writes the carry.
template <bool read, bool write, bool high_half, class T> Flow carry_product(Warp& w,
                                                                             const Ins& i) {
  using U = std::make_unsigned_t<T>;
  T *a = lanes<T>(w, i.input(0)), *b = lanes<T>(w, i.input(1));
  U *c = lanes<U>(w, i.input(2)), *d = lanes<U>(w, i.output());
  for (int l = 0; l < LANES; ++l) {
    if (!(w.exec >> l & 1)) continue;
    const U product = high_half ? U(multiply_high(a[l], b[l])) : U(a[l]) * U(b[l]);
    const u128 sum = u128(product) + c[l] + (read ? w.cc >> l & 1 : 0);
    if (write) w.cc = (w.cc & ~(1u << l)) | u32(sum >> sizeof(T) * 8 & 1) << l;
    d[l] = U(sum);
  }
  return Flow::next;
}
template <class T> struct CarryNames {
  const char *mad_lo, *mad_hi, *low, *low_cc, *high, *high_cc;
};
template <class T> void carry_products(Table& t, const CarryNames<T>& n) {
  const std::string shape = letter<T> == 'w' ? "w>www" : "n>nnn";
  t.push_back({n.mad_lo, carry_product<false, true, false, T>, shape});
  t.push_back({n.mad_hi, carry_product<false, true, true, T>, shape});
  t.push_back({n.low, carry_product<true, false, false, T>, shape});
  t.push_back({n.low_cc, carry_product<true, true, false, T>, shape});
  t.push_back({n.high, carry_product<true, false, true, T>, shape});
  t.push_back({n.high_cc, carry_product<true, true, true, T>, shape});
}

void add_carries(Table& t) {
  t.push_back({"add.cc.u32", carry<false, true, false, u32>, "n>nn"});
  t.push_back({"addc.u32", carry<true, false, false, u32>, "n>nn"});
  t.push_back({"addc.cc.u32", carry<true, true, false, u32>, "n>nn"});
  t.push_back({"sub.cc.u32", carry<false, true, true, u32>, "n>nn"});
  t.push_back({"subc.u32", carry<true, false, true, u32>, "n>nn"});
  t.push_back({"subc.cc.u32", carry<true, true, true, u32>, "n>nn"});
  t.push_back({"add.cc.u64", carry<false, true, false, u64>, "w>ww"});
  t.push_back({"addc.u64", carry<true, false, false, u64>, "w>ww"});
  t.push_back({"addc.cc.u64", carry<true, true, false, u64>, "w>ww"});
  t.push_back({"sub.cc.u64", carry<false, true, true, u64>, "w>ww"});
  t.push_back({"subc.u64", carry<true, false, true, u64>, "w>ww"});
  t.push_back({"subc.cc.u64", carry<true, true, true, u64>, "w>ww"});
#define NAMES(s) \
  {"mad.lo.cc." s, "mad.hi.cc." s, "madc.lo." s, "madc.lo.cc." s, "madc.hi." s, "madc.hi.cc." s}
  carry_products<u32>(t, NAMES("u32"));
  carry_products<i32>(t, NAMES("s32"));
  carry_products<u64>(t, NAMES("u64"));
  carry_products<i64>(t, NAMES("s64"));
#undef NAMES
}

}  // namespace

void add_arithmetic(Table& t) {
  add_floats(t);
  add_directed(t);
  add_halves(t);
  add_integers(t);
  add_logic(t);
  add_comparisons(t);
  add_carries(t);
}

}  // namespace sim
