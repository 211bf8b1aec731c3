// binary16 and bfloat16 in software: the compilers we must live with have no portable type.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace sim {

inline float bits_to_float(uint32_t b) {
  float f;
  std::memcpy(&f, &b, 4);
  return f;
}
inline uint32_t float_to_bits(float f) {
  uint32_t b;
  std::memcpy(&b, &f, 4);
  return b;
}

struct Half {
  uint16_t bits;
  explicit operator float() const {
    uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = bits >> 10 & 31,
             mantissa = bits & 1023;
    if (exponent == 31) return bits_to_float(sign | 0x7f800000 | mantissa << 13);
    if (exponent) return bits_to_float(sign | (exponent + 112) << 23 | mantissa << 13);
    float tiny = std::ldexp(float(mantissa), -24);
    return sign ? -tiny : tiny;
  }
};

// Rounds to nearest even, once, from double: exact for anything a float or a float product holds.
inline Half to_half(double value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return {0x7fff};
  double size = std::fabs(value);
  if (size >= 65520.0) return {uint16_t(sign | 0x7c00)};
  if (size < 6.103515625e-05)  // subnormal: units of 2^-24
    return {uint16_t(sign | uint16_t(std::nearbyint(std::ldexp(size, 24))))};
  int exponent;
  double fraction = std::frexp(size, &exponent);                           // [0.5, 1)
  uint32_t mantissa = uint32_t(std::nearbyint(std::ldexp(fraction, 11)));  // [1024, 2048]
  return {uint16_t(sign | (((exponent + 13) << 10) + mantissa))};
}

struct Bfloat {
  uint16_t bits;
  explicit operator float() const { return bits_to_float(uint32_t(bits) << 16); }
};

inline Bfloat to_bfloat(float value) {
  uint32_t b = float_to_bits(value);
  if (std::isnan(value)) return {0x7fff};
  return {uint16_t((b + 0x7fff + (b >> 16 & 1)) >> 16)};
}

// ``value`` in a format of 16 bits, rounded once: to nearest even ('n'), to zero ('z'), down ('m')
// or up ('p'). A long double holds every integer of 64 bits.
template <class To> [[gnu::noinline]] To rounded_to(long double value, char mode) {
  constexpr bool half = std::is_same_v<To, Half>;
  constexpr int fraction = half ? 10 : 7, least = half ? -14 : -126;
  constexpr uint32_t infinity = half ? 0x7c00 : 0x7f80;
  if (std::isnan(value)) return {0x7fff};
  const bool negative = std::signbit(value);
  const uint16_t sign = negative ? 0x8000 : 0;
  if (std::isinf(value)) return {uint16_t(sign | infinity)};
  if (value == 0) return {sign};
  int exponent;
  std::frexp(value, &exponent);  // value in [2^(exponent - 1), 2^exponent)
  exponent = exponent - 1 < least ? least : exponent - 1;
  const long double units = std::ldexp(std::fabs(value), fraction - exponent);
  const bool away = mode == (negative ? 'm' : 'p');
  const long double size = mode == 'n' ? std::nearbyint(units)
                           : away      ? std::ceil(units)
                                       : std::floor(units);
  // The hidden bit of a normal number adds one to the exponent's field.
  const long double bits = size + std::ldexp((long double)(exponent - least), fraction);
  if (bits < infinity) return {uint16_t(sign | uint16_t(bits))};
  return {uint16_t(sign | (mode == 'n' || away ? infinity : infinity - 1))};
}

}  // namespace sim
