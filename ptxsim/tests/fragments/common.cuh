// What fragments use beyond CUDA's own functions, and how their variables reach them. Each thread
// has 13 slots of 64 bits in `in` and in `out`, one per variable.
#pragma once

#define VALUES 13

DEVICE inline int add(int a, int b) { return (int)((unsigned)a + (unsigned)b); }
DEVICE inline int sub(int a, int b) { return (int)((unsigned)a - (unsigned)b); }
DEVICE inline int mul(int a, int b) { return (int)((unsigned)a * (unsigned)b); }
DEVICE inline int quotient(int a, int b) { return b == 0 || b == -1 ? sub(0, a) : a / b; }
DEVICE inline int leftover(int a, int b) { return b == 0 || b == -1 ? a : a % b; }
DEVICE inline int magnitude(int a) { return a < 0 ? sub(0, a) : a; }

using Wide = unsigned long long;
DEVICE inline long long add(long long a, long long b) { return (long long)((Wide)a + (Wide)b); }
DEVICE inline long long sub(long long a, long long b) { return (long long)((Wide)a - (Wide)b); }
DEVICE inline long long mul(long long a, long long b) { return (long long)((Wide)a * (Wide)b); }
DEVICE inline long long quotient(long long a, long long b) {
  return b == 0 || b == -1 ? sub(0ll, a) : a / b;
}
DEVICE inline long long leftover(long long a, long long b) {
  return b == 0 || b == -1 ? a : a % b;
}

// Which NaN comes out differs between machines: make it one before anybody looks at its bits.
DEVICE inline float pure(float x) { return x != x ? __int_as_float(0x7fc00000) : x; }
DEVICE inline double pure(double x) {
  return x != x ? __longlong_as_double(0x7ff8000000000000ll) : x;
}
DEVICE inline int bits(float x) { return __float_as_int(pure(x)); }
DEVICE inline long long bits(double x) { return __double_as_longlong(pure(x)); }
DEVICE inline int high(double x) { return (int)(bits(x) >> 32); }
DEVICE inline int low(double x) { return (int)bits(x); }
DEVICE inline float as_float(int x) { return pure(__int_as_float(x)); }
DEVICE inline double as_double(long long x) { return pure(__longlong_as_double(x)); }

DEVICE inline unsigned half_bits(float x) { return x != x ? 0x7fffu : exact_half_bits(x); }

#define CALL(fragment, in, out)                                                             \
  {                                                                                         \
    int i0 = (int)in[0], i1 = (int)in[1], i2 = (int)in[2];                                  \
    unsigned u0 = (unsigned)in[3], u1 = (unsigned)in[4], u2 = (unsigned)in[5];              \
    long long l0 = in[6], l1 = in[7];                                                       \
    float f0 = as_float((int)in[8]), f1 = as_float((int)in[9]), f2 = as_float((int)in[10]); \
    double d0 = as_double(in[11]), d1 = as_double(in[12]);                                  \
    fragment(i0, i1, i2, u0, u1, u2, l0, l1, f0, f1, f2, d0, d1);                           \
    out[0] = i0, out[1] = i1, out[2] = i2;                                                  \
    out[3] = u0, out[4] = u1, out[5] = u2;                                                  \
    out[6] = l0, out[7] = l1;                                                               \
    out[8] = bits(f0), out[9] = bits(f1), out[10] = bits(f2);                               \
    out[11] = bits(d0), out[12] = bits(d1);                                                 \
  }
