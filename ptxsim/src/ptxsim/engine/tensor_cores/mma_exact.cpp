// mma of doubles, integers and bits, with the fragment layouts of the PTX ISA. Doubles are summed
// by fused multiply-adds in the order of K; sums of integers are exact, and then wrap or saturate.
#include <algorithm>
#include <cfenv>
#include <limits>

#include "../checks/undefined.hpp"
#include "../machine/machine.hpp"
#include "../program/operations.hpp"
#include "../schedule/divergence.hpp"
#include "undefined_fragments.hpp"

namespace sim {
namespace {

// The last operand says how an element of A or B is read, whether sums saturate, and that bits are
// multiplied by xor rather than by and; of doubles, how sums are rounded.
constexpr i32 A_SIGNED = 1, B_SIGNED = 2, SATURATES = 4, DIFFERS = 8;
constexpr int ROUNDINGS[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

struct Doubles {
  static constexpr int per_register = 1, most_k = 16;
  using Cell = u64;
  using Element = double;
  static double element(u64 reg, int, bool) { return std::bit_cast<double>(reg); }
  static u64 sum(const double* a, const double* b, int k, u64 start, i32) {
    double sum = std::bit_cast<double>(start);
    for (int at = 0; at < k; ++at) sum = __builtin_fma(a[at], b[at], sum);
    return std::bit_cast<u64>(sum);
  }
};

template <int bits> struct Integers {
  static constexpr int per_register = 32 / bits, most_k = 256 / bits;
  using Cell = u32;
  using Element = i32;
  static i32 element(u32 reg, int e, bool is_signed) {
    const u32 top = reg << (32 - bits * (e + 1));
    return is_signed ? i32(top) >> (32 - bits) : i32(top >> (32 - bits));
  }
  static u32 sum(const i32* a, const i32* b, int k, u32 start, i32 form) {
    i64 sum = i32(start);
    for (int at = 0; at < k; ++at)
      sum += bits == 1 && form & DIFFERS ? a[at] ^ b[at] : a[at] * b[at];
    using Limits = std::numeric_limits<i32>;
    if (form & SATURATES) sum = std::clamp<i64>(sum, Limits::min(), Limits::max());
    return u32(sum);
  }
};

// x: the operand slots d…, a…, b…, c…, then the form. M rows and K products of T
template <class T> struct Exact {
  static constexpr int P = T::per_register;
  int M, K, A = M * K / 32 / P, B = K / 4 / P, C = M / 4;  // registers that hold a matrix

  // A register of A holds row lane / 4 or, with 16 rows, every other one the row 8 further down.
  int from(int r) const { return M == 16 ? 8 * (r & 1) : 0; }

  void spread_undefined(Warp& w, const i32* d) const {
    const i32 *a = d + C, *b = a + A, *c = b + B;
    UndefinedFragments found;
    for (int r = 0; r < A; ++r) found.add_a(w, a[r], from(r));
    for (int r = 0; r < B; ++r) found.add_b(w, b[r]);
    u32 bad[4], origin[4];  // D may be C
    for (int e = 0; e < C; ++e) {
      const u32 start = w.undefined[c[e]];
      bad[e] = (start | found.of_sum(e)) & w.exec;
      origin[e] = start ? w.origin[c[e]] : found.origin;
    }
    for (int e = 0; e < C; ++e) mark_undefined(w, d[e], bad[e], origin[e]);
  }

  Flow multiply(Warp& w, const Ins& i) const {
    Flow flow = Flow::next;
    if (!come_together(w, flow)) return flow;
    const i32 *d = i.x + i.pooled(), *from_a = d + C, *from_b = from_a + A, *c = from_b + B;
    const i32 form = c[C];
    typename T::Element a[16][T::most_k], b[8][T::most_k];
    for (int l = 0; l < LANES; ++l) {
      const int group = l >> 2, first = (l & 3) * P;
      for (int r = 0; r < A; ++r)
        for (int e = 0; e < P; ++e)
          a[group + from(r)][first + e + 4 * P * (M == 16 ? r >> 1 : r)] =
              T::element(lanes<typename T::Cell>(w, from_a[r])[l], e, form & A_SIGNED);
      for (int r = 0; r < B; ++r)
        for (int e = 0; e < P; ++e)
          b[group][first + e + 4 * P * r] =
              T::element(lanes<typename T::Cell>(w, from_b[r])[l], e, form & B_SIGNED);
    }
    typename T::Cell sums[LANES][4];
    for (int l = 0; l < LANES; ++l)
      for (int e = 0; e < C; ++e)
        sums[l][e] = T::sum(a[(l >> 2) + 8 * (e >> 1)], b[(l & 3) * 2 + (e & 1)], K,
                            lanes<typename T::Cell>(w, c[e])[l], form);
    if (w.tainted) spread_undefined(w, d);
    for (u32 rest = w.exec; rest; rest &= rest - 1)
      for (int e = 0, l = __builtin_ctz(rest); e < C; ++e)
        lanes<typename T::Cell>(w, d[e])[l] = sums[l][e];
    return Flow::next;
  }

  // The opaque calls keep the compiler from moving sums across.
  Flow multiply_rounded(Warp& w, const Ins& i) const {
    std::fesetround(ROUNDINGS[i.x[i.pooled() + C + A + B + C] & 3]);
    const Flow flow = multiply(w, i);
    std::fesetround(FE_TONEAREST);
    return flow;
  }
};

template <class T, int M, int K> Flow exact(Warp& w, const Ins& i) {
  constexpr Exact<T> product{M, K};
  if constexpr (std::is_same_v<T, Doubles>) return product.multiply_rounded(w, i);
  else return product.multiply(w, i);
}

template <class T> void add_form(Table& t, const char* name, Handler handler, Exact<T> product) {
  constexpr char kind = std::is_same_v<T, Doubles> ? 'w' : 'n';
  const std::string sums(product.C, kind), factors(product.A + product.B, kind);
  add(t, name, handler, "*" + sums + ">" + factors + sums + "i");
}
template <class T, int M, int K> void add_exact(Table& t, const char* name) {
  add_form<T>(t, name, exact<T, M, K>, {M, K});
}

}  // namespace

void add_exact_mma(Table& t) {
  add_exact<Doubles, 8, 4>(t, "mma.m8n8k4.f64.f64");
  add_exact<Doubles, 16, 4>(t, "mma.m16n8k4.f64.f64");
  add_exact<Doubles, 16, 8>(t, "mma.m16n8k8.f64.f64");
  add_exact<Doubles, 16, 16>(t, "mma.m16n8k16.f64.f64");
  add_exact<Integers<8>, 8, 16>(t, "mma.m8n8k16.s32.8");
  add_exact<Integers<8>, 16, 16>(t, "mma.m16n8k16.s32.8");
  add_exact<Integers<8>, 16, 32>(t, "mma.m16n8k32.s32.8");
  add_exact<Integers<4>, 8, 32>(t, "mma.m8n8k32.s32.4");
  add_exact<Integers<4>, 16, 32>(t, "mma.m16n8k32.s32.4");
  add_exact<Integers<4>, 16, 64>(t, "mma.m16n8k64.s32.4");
  add_exact<Integers<1>, 8, 128>(t, "mma.m8n8k128.s32.1");
  add_exact<Integers<1>, 16, 128>(t, "mma.m16n8k128.s32.1");
  add_exact<Integers<1>, 16, 256>(t, "mma.m16n8k256.s32.1");
}

}  // namespace sim
