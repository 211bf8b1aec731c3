// cvt, and the moves that pack and unpack registers.
#include <limits>
#include <utility>

#include "lanewise.hpp"

namespace sim {
namespace {

double whole(double v, char mode) {
  return mode == 'z'   ? std::trunc(v)
         : mode == 'n' ? std::nearbyint(v)
         : mode == 'm' ? std::floor(v)
                       : std::ceil(v);
}

// Float to integer saturates, as the GPU does. NaN becomes 0, but the middle of the range where
// 64 bits take part on either side.
template <class To> [[gnu::noinline]] To to_integer(double v, char mode, bool wide) {
  using Limits = std::numeric_limits<To>;
  if (std::isnan(v)) return wide ? To(std::make_unsigned_t<To>(1) << (sizeof(To) * 8 - 1)) : To(0);
  v = whole(v, mode);
  if (!(v > double(Limits::min()))) return Limits::min();
  if (!(v < double(Limits::max()))) return Limits::max();
  return To(v);
}

template <class T> auto widen(T v) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>) return float(v);
  else return v;
}
template <class T> constexpr bool is_float =
    std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>;

template <class To, class From, char mode> To convert(From value) {
  auto v = widen(value);
  if constexpr (is_float<To> && is_float<From> && mode != 'r') v = decltype(v)(whole(v, mode));
  if constexpr (std::is_same_v<To, Half> && sizeof(v) <= 4) return to_half(double(v));
  else if constexpr (std::is_same_v<To, Bfloat> && std::is_same_v<decltype(v), float>)
    return to_bfloat(v);
  else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, Bfloat>)
    return rounded_to<To>(v, 'n');
  else if constexpr (is_float<To>) return To(v);
  else if constexpr (is_float<From>)
    return to_integer<To>(v, mode, sizeof(From) == 8 || sizeof(To) == 8);
  else return To(v);
}

// The integer of type To that is nearest to `v`.
template <class To, class From> To in_range(From v) {
  using Limits = std::numeric_limits<To>;
  return std::cmp_less(v, Limits::min())      ? Limits::min()
         : std::cmp_greater(v, Limits::max()) ? Limits::max()
                                              : To(v);
}

// Sub-word results are sign- or zero-extended to the 32-bit lane they sit in.
template <class To> auto widest(To v) {
  if constexpr (!std::is_integral_v<To> || sizeof(To) >= 4) return v;
  else if constexpr (std::is_signed_v<To>) return i32(v);
  else return u32(v);
}

template <class T> constexpr bool is_common = sizeof(T) > 1 && !std::is_same_v<T, double>;
// A conversion's name is "cvt.", the mode, the type of the result and that of the operand.
struct Conversion { const char *mode, *to, *from; };
// Not inlined: hundreds of copies would take the compiler seconds.
[[gnu::noinline]] void add_conversion(Table& t, const Conversion& c, Handler handler, char to,
                                      char from) {
  add(t, std::string("cvt.") + c.mode + "." + c.to + "." + c.from, handler,
      std::string{to, '>', from});
}

// Mode "r" is the default rounding, n/z/m/p round to an integer.
template <class To, class From, char mode> void one(Table& t, const char* to, const char* from) {
  static constexpr char name[] = {mode, 0};
  constexpr auto f = [](From v) { return widest<To>(convert<To, From, mode>(v)); };
  constexpr bool common = mode == 'r' && is_common<To> && is_common<From>;
  using How = std::conditional_t<common, Run<Lanewise, decltype(f)>, Run<Rare, decltype(f)>>;
  add_conversion(t, {name, to, from}, How::handler, letter<To>, letter<From>);
}
// cvt.rz, cvt.rm and cvt.rp: the result of 16 bits is rounded in a direction.
template <class To, class From, char mode> void directed(Table& t, const char* to,
                                                         const char* from) {
  static constexpr char name[] = {'r', mode, 0};
  constexpr auto f = [](From v) { return rounded_to<To>(widen(v), mode); };
  add_conversion(t, {name, to, from}, Run<Rare, decltype(f)>::handler, letter<To>, letter<From>);
}
template <class To, class From> void modes(Table& t, const char* to, const char* from) {
  if constexpr (is_float<To> || !is_float<From>) one<To, From, 'r'>(t, to, from);
  if constexpr (is_float<From> && (!is_float<To> || std::is_same_v<To, From>)) {
    one<To, From, 'n'>(t, to, from);
    one<To, From, 'z'>(t, to, from);
    one<To, From, 'm'>(t, to, from);
    one<To, From, 'p'>(t, to, from);
  }
  if constexpr (sizeof(To) == 2 && is_float<To> && !std::is_same_v<To, From>) {
    directed<To, From, 'z'>(t, to, from);
    directed<To, From, 'm'>(t, to, from);
    directed<To, From, 'p'>(t, to, from);
  }
  if constexpr (!is_float<To> && !is_float<From>) {
    constexpr auto f = [](From v) { return widest<To>(in_range<To>(v)); };
    add_conversion(t, {"sat", to, from}, Run<Rare, decltype(f)>::handler, letter<To>, letter<From>);
  }
}
template <class From> void from_type(Table& t, const char* from) {
  modes<u8, From>(t, "u8", from);
  modes<i8, From>(t, "s8", from);
  modes<u16, From>(t, "u16", from);
  modes<i16, From>(t, "s16", from);
  modes<u32, From>(t, "u32", from);
  modes<i32, From>(t, "s32", from);
  modes<u64, From>(t, "u64", from);
  modes<i64, From>(t, "s64", from);
  modes<Half, From>(t, "f16", from);
  modes<Bfloat, From>(t, "bf16", from);
  modes<float, From>(t, "f32", from);
  modes<double, From>(t, "f64", from);
}

u32 pack_half2(float high, float low) { return u32(to_half(high).bits) << 16 | to_half(low).bits; }
u32 pack_bfloat2(float high, float low) {
  return u32(to_bfloat(high).bits) << 16 | to_bfloat(low).bits;
}
// TF32 keeps 10 mantissa bits, rounded to nearest: ties to even, or away from zero.
u32 to_tf32(u32 bits, bool to_even) {
  const u32 rounded = (bits + (to_even ? 0xfff + (bits >> 13 & 1) : 0x1000)) & 0xffffe000;
  return (bits & 0x7f800000) == 0x7f800000 ? bits : rounded;
}

struct UnpackOperands { i32 low, high, packed; };

Flow unpack64(Warp& w, const Ins& i) {
  const auto o = operands<UnpackOperands>(i);
  u64* s = lanes<u64>(w, o.packed);
  u32 *low = o.low < 0 ? nullptr : lanes<u32>(w, o.low),
      *high = o.high < 0 ? nullptr : lanes<u32>(w, o.high);
  for (int l = 0; l < LANES; ++l)
    if (w.exec >> l & 1) {
      if (low) low[l] = u32(s[l]);
      if (high) high[l] = u32(s[l] >> 32);
    }
  return Flow::next;
}
Flow unpack32(Warp& w, const Ins& i) {
  const auto o = operands<UnpackOperands>(i);
  u32* s = lanes<u32>(w, o.packed);
  for (int l = 0; l < LANES; ++l)
    if (w.exec >> l & 1) {
      u32 v = s[l];
      if (o.low >= 0) lanes<u32>(w, o.low)[l] = v & 0xffff;
      if (o.high >= 0) lanes<u32>(w, o.high)[l] = v >> 16;
    }
  return Flow::next;
}

}  // namespace

void add_conversions(Table& t) {
  from_type<u8>(t, "u8");
  from_type<i8>(t, "s8");
  from_type<u16>(t, "u16");
  from_type<i16>(t, "s16");
  from_type<u32>(t, "u32");
  from_type<i32>(t, "s32");
  from_type<u64>(t, "u64");
  from_type<i64>(t, "s64");
  from_type<Half>(t, "f16");
  from_type<Bfloat>(t, "bf16");
  from_type<float>(t, "f32");
  from_type<double>(t, "f64");
  lanewise(t, "cvt.f16x2.f32", [](float a, float b) { return pack_half2(a, b); });
  lanewise(t, "cvt.bf16x2.f32", [](float a, float b) { return pack_bfloat2(a, b); });
  lanewise(t, "cvt.rn.tf32.f32", [](u32 a) { return to_tf32(a, true); });
  lanewise(t, "cvt.rna.tf32.f32", [](u32 a) { return to_tf32(a, false); });
  lanewise(t, "pack.b64", [](u32 low, u32 high) { return u64(high) << 32 | low; });
  lanewise(t, "pack.b32", [](u16 low, u16 high) { return u32(high) << 16 | low; });
  rounded(t, {"cvt.rz.f32.f64", "cvt.rm.f32.f64", "cvt.rp.f32.f64"},
          [](double a) { return float(a); });
  rounded(t, {"cvt.rz.f32.s32", "cvt.rm.f32.s32", "cvt.rp.f32.s32"},
          [](i32 a) { return float(a); });
  rounded(t, {"cvt.rz.f32.u32", "cvt.rm.f32.u32", "cvt.rp.f32.u32"},
          [](u32 a) { return float(a); });
  rounded(t, {"cvt.rz.f32.s64", "cvt.rm.f32.s64", "cvt.rp.f32.s64"},
          [](i64 a) { return float(a); });
  rounded(t, {"cvt.rz.f32.u64", "cvt.rm.f32.u64", "cvt.rp.f32.u64"},
          [](u64 a) { return float(a); });
  rounded(t, {"cvt.rz.f64.s64", "cvt.rm.f64.s64", "cvt.rp.f64.s64"},
          [](i64 a) { return double(a); });
  rounded(t, {"cvt.rz.f64.u64", "cvt.rm.f64.u64", "cvt.rp.f64.u64"},
          [](u64 a) { return double(a); });
  add(t, "unpack.b64", unpack64, "NN>w");
  add(t, "unpack.b32", unpack32, "NN>n");
}

}  // namespace sim
