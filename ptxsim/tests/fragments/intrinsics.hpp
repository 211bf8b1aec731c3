// CUDA's functions in plain C++, for the host. Slow and obvious: this is what the simulator is
// compared with. Directed rounding sets the FPU's mode round one operation (-frounding-math).
#pragma once
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

#define DEVICE static
using std::isnan;

template <typename To, typename From>
static To recast(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  std::memcpy(&result, &value, sizeof(To));
  return result;
}
static float __int_as_float(int x) { return recast<float>(x); }
static int __float_as_int(float x) { return recast<int>(x); }
static double __longlong_as_double(long long x) { return recast<double>(x); }
static long long __double_as_longlong(double x) { return recast<long long>(x); }
static double __hiloint2double(int high, int low) {
  return recast<double>((long long)((uint64_t)(uint32_t)high << 32 | (uint32_t)low));
}

// --- integers

#define LESS_AND_MORE(T)                                  \
  static T min(T a, T b) { return b < a ? b : a; }        \
  static T max(T a, T b) { return a < b ? b : a; }
LESS_AND_MORE(int)
LESS_AND_MORE(unsigned)
LESS_AND_MORE(long long)

static int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
static unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((uint64_t)a * b) >> 32); }
static long long __mul64hi(long long a, long long b) {
  return (long long)(((__int128)a * b) >> 64);
}
static uint64_t __umul64hi(uint64_t a, uint64_t b) {
  return (uint64_t)(((unsigned __int128)a * b) >> 64);
}
static int low24(int a) { return (int)((unsigned)a << 8) >> 8; }
static int __mul24(int a, int b) { return (int)((long long)low24(a) * low24(b)); }
static unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
static int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
static int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
static unsigned __uhadd(unsigned a, unsigned b) { return (unsigned)(((uint64_t)a + b) >> 1); }
static unsigned __urhadd(unsigned a, unsigned b) {
  return (unsigned)(((uint64_t)a + b + 1) >> 1);
}
static int __popc(unsigned a) { return __builtin_popcount(a); }
static int __popcll(uint64_t a) { return __builtin_popcountll(a); }
static int __clz(int a) { return a == 0 ? 32 : __builtin_clz((unsigned)a); }
static int __clzll(long long a) { return a == 0 ? 64 : __builtin_clzll((uint64_t)a); }
static int __ffs(int a) { return __builtin_ffs(a); }
static int __ffsll(long long a) { return __builtin_ffsll(a); }
static uint64_t __brevll(uint64_t a) {
  uint64_t result = 0;
  for (int bit = 0; bit < 64; ++bit) result |= (a >> bit & 1) << (63 - bit);
  return result;
}
static unsigned __brev(unsigned a) { return (unsigned)(__brevll(a) >> 32); }
static unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const uint64_t both = (uint64_t)b << 32 | a;
  unsigned result = 0;
  for (int byte = 0; byte < 4; ++byte) {
    const unsigned pick = selector >> (4 * byte) & 7;
    result |= (unsigned)(both >> (8 * pick) & 0xff) << (8 * byte);
  }
  return result;
}
static unsigned __sad(int a, int b, unsigned c) {
  return (unsigned)std::llabs((long long)a - b) + c;
}
static unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a > b ? a - b : b - a) + c; }
static int __dp4a(int a, int b, int c) {
  unsigned sum = (unsigned)c;
  for (int byte = 0; byte < 32; byte += 8)
    sum += (unsigned)((int8_t)(a >> byte) * (int8_t)(b >> byte));
  return (int)sum;
}
static unsigned left(unsigned low, unsigned high, unsigned by) {
  return (unsigned)((((uint64_t)high << 32 | low) << by) >> 32);
}
static unsigned right(unsigned low, unsigned high, unsigned by) {
  return (unsigned)(((uint64_t)high << 32 | low) >> by);
}
static unsigned __funnelshift_l(unsigned l, unsigned h, unsigned s) { return left(l, h, s & 31); }
static unsigned __funnelshift_r(unsigned l, unsigned h, unsigned s) { return right(l, h, s & 31); }
static unsigned __funnelshift_lc(unsigned l, unsigned h, unsigned s) {
  return left(l, h, min(s, 32u));
}
static unsigned __funnelshift_rc(unsigned l, unsigned h, unsigned s) {
  return right(l, h, min(s, 32u));
}

// --- floating point

// Operands and result are volatile, so that nothing moves out of the time in which the mode is set.
template <typename Operation>
__attribute__((noinline)) static auto rounded(int mode, Operation operation) {
  std::fesetround(mode);
  volatile auto result = operation();
  std::fesetround(FE_TONEAREST);
  return result;
}
#define ROUNDED1(name, mode, To, From, expression)          \
  static To name(From value) {                              \
    volatile From a = value;                                \
    return rounded(mode, [&] { return (To)(expression); }); \
  }
#define ROUNDED2(name, mode, T, expression)                \
  static T name(T left, T right) {                         \
    volatile T a = left, b = right;                        \
    return rounded(mode, [&] { return (T)(expression); }); \
  }
#define ROUNDED3(name, mode, T, expression)                \
  static T name(T first, T second, T third) {              \
    volatile T a = first, b = second, c = third;           \
    return rounded(mode, [&] { return (T)(expression); }); \
  }
ROUNDED2(__fadd_rz, FE_TOWARDZERO, float, a + b)
ROUNDED2(__fadd_ru, FE_UPWARD, float, a + b)
ROUNDED2(__fadd_rd, FE_DOWNWARD, float, a + b)
ROUNDED2(__fmul_rz, FE_TOWARDZERO, float, a * b)
ROUNDED2(__fmul_ru, FE_UPWARD, float, a * b)
ROUNDED2(__fdiv_rz, FE_TOWARDZERO, float, a / b)
ROUNDED2(__dadd_rd, FE_DOWNWARD, double, a + b)
ROUNDED2(__dmul_rz, FE_TOWARDZERO, double, a * b)
ROUNDED3(__fmaf_rz, FE_TOWARDZERO, float, std::fma(a, b, c))
ROUNDED3(__fma_ru, FE_UPWARD, double, std::fma(a, b, c))
ROUNDED1(__fsqrt_ru, FE_UPWARD, float, float, std::sqrt((float)a))
ROUNDED1(__int2float_rz, FE_TOWARDZERO, float, int, a)
ROUNDED1(__ll2float_ru, FE_UPWARD, float, long long, a)
ROUNDED1(__double2float_rz, FE_TOWARDZERO, float, double, a)
ROUNDED1(__double2float_rd, FE_DOWNWARD, float, double, a)
static float __frcp_rn(float a) { return 1.0f / a; }
static float __saturatef(float a) { return a >= 1.0f ? 1.0f : a > 0.0f ? a : 0.0f; }

// Minimum and maximum as the GPU has them: a NaN gives way, and -0 is below +0.
template <typename T>
static T smaller(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <typename T>
static T larger(T a, T b) {
  return a != a || b != b ? smaller(a, b) : -smaller(-a, -b);
}
#define fminf smaller<float>
#define fmaxf larger<float>
#define fmin smaller<double>
#define fmax larger<double>

// Conversions to integers round, then saturate. NaN becomes 0, or the top bit where 64-bit numbers
// take part.
template <typename To, typename From>
static To saturated(int mode, From value) {
  volatile From a = value;
  const From whole = rounded(mode, [&] { return std::nearbyint((From)a); });
  const double lowest = (double)std::numeric_limits<To>::min();
  const double beyond = std::ldexp(1.0, std::numeric_limits<To>::digits);
  constexpr bool wide = sizeof(To) == 8 || sizeof(From) == 8;
  if (whole != whole) return wide ? To(1) << (8 * sizeof(To) - 1) : To(0);
  if (whole < lowest) return std::numeric_limits<To>::min();
  if (whole >= beyond) return std::numeric_limits<To>::max();
  return (To)whole;
}
static int __float2int_rz(float a) { return saturated<int>(FE_TOWARDZERO, a); }
static int __float2int_rn(float a) { return saturated<int>(FE_TONEAREST, a); }
static int __float2int_ru(float a) { return saturated<int>(FE_UPWARD, a); }
static int __float2int_rd(float a) { return saturated<int>(FE_DOWNWARD, a); }
static unsigned __float2uint_rz(float a) { return saturated<unsigned>(FE_TOWARDZERO, a); }
static unsigned __float2uint_rn(float a) { return saturated<unsigned>(FE_TONEAREST, a); }
static long long __float2ll_rz(float a) { return saturated<long long>(FE_TOWARDZERO, a); }
static int __double2int_rz(double a) { return saturated<int>(FE_TOWARDZERO, a); }
static int __double2int_rn(double a) { return saturated<int>(FE_TONEAREST, a); }
static int __double2int_ru(double a) { return saturated<int>(FE_UPWARD, a); }
static unsigned __double2uint_rz(double a) { return saturated<unsigned>(FE_TOWARDZERO, a); }
static long long __double2ll_rn(double a) { return saturated<long long>(FE_TONEAREST, a); }

static unsigned exact_half_bits(float a) {
  const _Float16 half = (_Float16)a;
  uint16_t result;
  std::memcpy(&result, &half, sizeof(result));
  return result;
}
static float through_half(float a) { return (float)(_Float16)a; }
