// Integers.
#include <algorithm>
#include <functional>

#include "lanewise.hpp"
#include "multiply_high.hpp"

namespace sim {
namespace {

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
template <class T> T shift_right(T a, u32 b) {
  constexpr u32 bits = sizeof(T) * 8;
  if constexpr (std::is_signed_v<T>) return T(a >> std::min(b, bits - 1));
  else return b >= bits ? T(0) : T(a >> b);
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

i32 clamp(i64 v) { return i32(std::clamp<i64>(v, INT32_MIN, INT32_MAX)); }
template <class A, class B, int from> u32 dot2(u32 a, u32 b, u32 c) {
  for (int k = 0; k < 2; ++k) c += u32(i32(A(a >> 16 * k))) * u32(i32(B(b >> 8 * (k + from))));
  return c;
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
  lanewise_on<T>(t, n.add, [](U a, U b) { return U(a + b); });
  lanewise_on<T>(t, n.sub, [](U a, U b) { return U(a - b); });
  lanewise_on<T>(t, n.low, [](U a, U b) { return U(u64(a) * u64(b)); });
  lanewise_on<T>(t, n.high, [](T a, T b) { return multiply_high(a, b); });
  lanewise_on<T>(t, n.mad, [](U a, U b, U c) { return U(u64(a) * u64(b) + u64(c)); });
  lanewise_on<T>(t, n.mad_high, [](T a, T b, U c) { return U(U(multiply_high(a, b)) + c); });
  lanewise_on<T>(t, n.div, [](T a, T b) { return quotient(a, b); });
  lanewise_on<T>(t, n.rem, [](T a, T b) { return remainder_of(a, b); });
  lanewise_on<T>(t, n.min, [](T a, T b) { return std::min(a, b); });
  lanewise_on<T>(t, n.max, [](T a, T b) { return std::max(a, b); });
  lanewise_on<T>(t, n.neg, [](U a) { return U(0 - a); });
  lanewise_on<T>(t, n.abs, [](T a) { return a < 0 ? U(0 - U(a)) : U(a); });
  lanewise_on<T>(t, n.shr, [](T a, u32 b) { return shift_right(a, b); });
}

}  // namespace

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
  rarely(t, "mul24.lo.s32", [](i32 a, i32 b) { return u32(i64(a << 8 >> 8) * (b << 8 >> 8)); });
  rarely(t, "mul24.lo.u32", [](u32 a, u32 b) { return u32(u64(a & 0xffffff) * (b & 0xffffff)); });
  rarely(t, "mul24.hi.s32",
         [](i32 a, i32 b) { return i32(i64(a << 8 >> 8) * (b << 8 >> 8) >> 16); });
  rarely(t, "mul24.hi.u32",
         [](u32 a, u32 b) { return u32(u64(a & 0xffffff) * (b & 0xffffff) >> 16); });
  rarely(t, "mad24.lo.s32",
         [](i32 a, i32 b, u32 c) { return u32(i64(a << 8 >> 8) * (b << 8 >> 8)) + c; });
  rarely(t, "mad24.lo.u32",
         [](u32 a, u32 b, u32 c) { return u32(u64(a & 0xffffff) * (b & 0xffffff)) + c; });
  rarely(t, "add.sat.s32", [](i32 a, i32 b) { return clamp(i64(a) + b); });
  rarely(t, "sub.sat.s32", [](i32 a, i32 b) { return clamp(i64(a) - b); });
  rarely(t, "min.relu.s32", [](i32 a, i32 b) { return std::max(0, std::min(a, b)); });
  rarely(t, "max.relu.s32", [](i32 a, i32 b) { return std::max(0, std::max(a, b)); });
  rarely(t, "sad.u16", [](u16 a, u16 b, u16 c) { return u16(c + (a < b ? b - a : a - b)); });
  rarely(t, "sad.s16", [](i16 a, i16 b, u16 c) { return u16(c + (a < b ? b - a : a - b)); });
  rarely(t, "sad.u64", [](u64 a, u64 b, u64 c) { return c + (a < b ? b - a : a - b); });
  rarely(t, "sad.s64",
         [](i64 a, i64 b, u64 c) { return c + (a < b ? u64(b) - u64(a) : u64(a) - u64(b)); });
  rarely(t, "sad.u32", [](u32 a, u32 b, u32 c) { return c + (a < b ? b - a : a - b); });
  rarely(t, "sad.s32",
         [](i32 a, i32 b, u32 c) { return c + (a < b ? u32(b) - u32(a) : u32(a) - u32(b)); });
  rarely(t, "add.u16x2", [](u32 a, u32 b) { return two<u16>(a, b, std::plus<>{}); });
  rarely(t, "add.s16x2", [](u32 a, u32 b) { return two<u16>(a, b, std::plus<>{}); });
  rarely(t, "min.u16x2", [](u32 a, u32 b) { return two<u16>(a, b, Lesser{}); });
  rarely(t, "min.s16x2", [](u32 a, u32 b) { return two<i16>(a, b, Lesser{}); });
  rarely(t, "max.u16x2", [](u32 a, u32 b) { return two<u16>(a, b, Greater{}); });
  rarely(t, "max.s16x2", [](u32 a, u32 b) { return two<i16>(a, b, Greater{}); });
  rarely(t, "dp2a.lo.s32.s32", [](u32 a, u32 b, u32 c) { return dot2<i16, i8, 0>(a, b, c); });
  rarely(t, "dp2a.lo.s32.u32", [](u32 a, u32 b, u32 c) { return dot2<i16, u8, 0>(a, b, c); });
  rarely(t, "dp2a.lo.u32.s32", [](u32 a, u32 b, u32 c) { return dot2<u16, i8, 0>(a, b, c); });
  rarely(t, "dp2a.lo.u32.u32", [](u32 a, u32 b, u32 c) { return dot2<u16, u8, 0>(a, b, c); });
  rarely(t, "dp2a.hi.s32.s32", [](u32 a, u32 b, u32 c) { return dot2<i16, i8, 2>(a, b, c); });
  rarely(t, "dp2a.hi.s32.u32", [](u32 a, u32 b, u32 c) { return dot2<i16, u8, 2>(a, b, c); });
  rarely(t, "dp2a.hi.u32.s32", [](u32 a, u32 b, u32 c) { return dot2<u16, i8, 2>(a, b, c); });
  rarely(t, "dp2a.hi.u32.u32", [](u32 a, u32 b, u32 c) { return dot2<u16, u8, 2>(a, b, c); });
  rarely(t, "dp4a.s32.s32", [](u32 a, u32 b, u32 c) { return dot4<i8, i8>(a, b, c); });
  rarely(t, "dp4a.u32.u32", [](u32 a, u32 b, u32 c) { return dot4<u8, u8>(a, b, c); });
  rarely(t, "dp4a.s32.u32", [](u32 a, u32 b, u32 c) { return dot4<i8, u8>(a, b, c); });
  rarely(t, "dp4a.u32.s32", [](u32 a, u32 b, u32 c) { return dot4<u8, i8>(a, b, c); });
}

}  // namespace sim
