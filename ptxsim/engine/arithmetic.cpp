// Integer, float and logic operations, named as PTX names them once modifiers that do not change
// the result are dropped (lower.py does that).
#include <algorithm>
#include <bit>

#include "lanes.hpp"

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

// --- float32 and float64

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
  lanewise(t, "cvt.sat.f32.f32", [](f32 a) { return saturate(a); });
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
  lanewise(t, "testp.finite.f32", [](f32 a) { return bool(std::isfinite(a)); });
  lanewise(t, "testp.infinite.f32", [](f32 a) { return bool(std::isinf(a)); });
  lanewise(t, "testp.notanumber.f32", [](f32 a) { return bool(std::isnan(a)); });
  lanewise(t, "testp.number.f32", [](f32 a) { return !std::isnan(a); });
  lanewise(t, "testp.normal.f32", [](f32 a) { return bool(std::isnormal(a)); });
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
  u32 pos = b & 255, len = c & 255;
  if (!len) return 0;
  U field = pos >= bits ? U(0) : U(U(a) >> pos);
  if (len < bits) field &= (U(1) << len) - 1;
  if constexpr (std::is_signed_v<T>) {
    u32 top = std::min(pos + len - 1, bits - 1);
    bool sign = U(a) >> top & 1;
    if (sign && len < bits) field |= ~U(0) << std::min(len, bits - pos > bits ? 0 : bits - pos);
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
  lanewise(t, "sad.u32", [](u32 a, u32 b, u32 c) { return c + (a < b ? b - a : a - b); });
  lanewise(t, "sad.s32",
           [](i32 a, i32 b, u32 c) { return c + (a < b ? u32(b) - u32(a) : u32(a) - u32(b)); });
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
  const int table = int(i.imm);
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
