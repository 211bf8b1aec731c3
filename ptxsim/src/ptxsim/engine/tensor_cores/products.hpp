// How tensor cores add: numbers as the multipliers see them, and a sum of their products.
//
// The model is that of Hopper, as published measurements describe it: the products of one step are
// exact; they and the accumulator are aligned to the largest exponent among them and cut, toward
// zero, to FRACTION bits below it; the sum of what is left is exact, and is then cut to float32,
// or rounded to nearest even in FP16. docs/simulator.md says what is documented and what is not.
#pragma once

#include "../arithmetic/half.hpp"
#include "../types.hpp"

namespace sim {

constexpr int FRACTION = 25;  // bits kept below the largest exponent

// significand × 2^(exponent - fraction bits of the type); what has no such form is `special`.
struct Number { i32 significand = 0, exponent = 0; };

// Element types of A and B as 32-bit registers hold them.
template <int EXPONENT, int MANTISSA> struct Format {
  static constexpr int fraction = MANTISSA, sign = EXPONENT + MANTISSA,
                       bias = (1 << (EXPONENT - 1)) - 1;
  // bits: sign, exponent and fraction at the lower end
  static bool special(u32 bits) {
    return (bits >> MANTISSA & ((1 << EXPONENT) - 1)) == (1 << EXPONENT) - 1;
  }
  static Number number(u32 bits) {
    const i32 exponent = i32(bits >> MANTISSA & ((1 << EXPONENT) - 1));
    const i32 mantissa = i32(bits & ((1 << MANTISSA) - 1));
    const i32 size = exponent ? mantissa | 1 << MANTISSA : mantissa;
    return {bits >> (EXPONENT + MANTISSA) & 1 ? -size : size, (exponent ? exponent : 1) - bias};
  }
};

struct F16 : Format<5, 10> {
  static constexpr u32 per_register = 2, bytes = 2;
  static u32 bits(u32 reg, u32 k) { return reg >> 16 * k & 0xffff; }
  static float value(u32 b) { return float(Half{u16(b)}); }
};
struct Bf16 : Format<8, 7> {
  static constexpr u32 per_register = 2, bytes = 2;
  static u32 bits(u32 reg, u32 k) { return reg >> 16 * k & 0xffff; }
  static float value(u32 b) { return float(Bfloat{u16(b)}); }
};
struct Tf32 : Format<8, 10> {
  static constexpr u32 per_register = 1, bytes = 4;
  static u32 bits(u32 reg, u32) { return reg >> 13; }
  static float value(u32 b) { return bits_to_float(b << 13); }
};

// A row of A or a column of B: up to K elements that one step multiplies.
template <class T, int K> struct Vector {
  Number numbers[K];
  u32 raw[K];
  bool special = false;  // holds an infinity or a NaN

  void set(int k, u32 bits) {
    raw[k] = bits;
    numbers[k] = T::number(bits);
    special |= T::special(bits);
  }
  void negate() {
    for (int k = 0; k < K; ++k) {
      raw[k] ^= 1u << T::sign;
      numbers[k].significand = -numbers[k].significand;
    }
  }
};

constexpr u32 TENSOR_NAN = 0x7fffffff;

inline i64 aligned(i64 value, int by) {
  if (by > 62) return 0;
  return value < 0 ? -(-value >> by) : value >> by;
}

// sum × 2^exponent cut to float32, toward zero; what is too large becomes infinite.
inline float cut(i64 sum, int exponent) {
  if (!sum) return 0;
  const u64 size = u64(sum < 0 ? -sum : sum);
  const u32 sign = sum < 0 ? 0x80000000u : 0;
  const int top = 63 - __builtin_clzll(size) + exponent;  // of the leading bit
  if (top > 127) return bits_to_float(sign | 0x7f800000u);
  const int unit = top < -126 ? -149 : top - 23;  // exponent of the last place
  const int by = unit - exponent;
  const u32 places = by > 63 ? 0 : u32(by >= 0 ? size >> by : size << -by);
  // A normal number's leading bit adds one to the exponent's field.
  return bits_to_float(sign | (top < -126 ? places : (u32(top + 126) << 23) + places));
}

// With infinities or NaNs there is nothing to round.
template <class T, int K>
float special_sum(const Vector<T, K>& a, const Vector<T, K>& b, float c) {
  double sum = c;
  for (int k = 0; k < K; ++k) sum += double(T::value(a.raw[k])) * double(T::value(b.raw[k]));
  return sum != sum ? bits_to_float(TENSOR_NAN) : float(sum);
}

// c plus the products of a and b, in one step.
template <class T, int K, bool to_half_precision>
float sum_of_products(const Vector<T, K>& a, const Vector<T, K>& b, float c) {
  const u32 bits = float_to_bits(c);
  if (a.special || b.special || (bits & 0x7f800000) == 0x7f800000) return special_sum(a, b, c);
  i64 products[K];
  int exponents[K];
  const Number start = Format<8, 23>::number(bits);
  constexpr int NONE = -100000;
  int top = start.significand ? start.exponent : NONE;
  for (int k = 0; k < K; ++k) {
    products[k] = i64(a.numbers[k].significand) * b.numbers[k].significand;
    exponents[k] = a.numbers[k].exponent + b.numbers[k].exponent;
    const int exponent = products[k] ? exponents[k] : NONE;
    top = top > exponent ? top : exponent;
  }
  if (top == NONE) return 0;
  i64 sum = aligned(i64(start.significand) << (FRACTION - 23), top - start.exponent);
  for (int k = 0; k < K; ++k)
    if (products[k])
      sum += aligned(products[k] << (FRACTION - 2 * T::fraction), top - exponents[k]);
  if (!to_half_precision) return cut(sum, top - FRACTION);
  return float(to_half(std::ldexp(double(sum), top - FRACTION)));
}

}  // namespace sim
