// Sums and products with a carry.
#include "lanewise.hpp"
#include "multiply_high.hpp"

namespace sim {
namespace {

// Which of them read and write the carry.
struct Carry { bool read, write; };

template <class T> Flow add_carried(Warp& w, const Ins& i, Carry carry, bool subtract) {
  T *d = lanes<T>(w, i.output()), *a = lanes<T>(w, i.input(0)), *b = lanes<T>(w, i.input(1));
  for (int l = 0; l < LANES; ++l) {
    if (!(w.exec >> l & 1)) continue;
    u32 in = carry.read ? w.cc >> l & 1 : 0;
    u128 wide_result = subtract ? u128(a[l]) - b[l] - in : u128(a[l]) + b[l] + in;
    if (carry.write) w.cc = (w.cc & ~(1u << l)) | u32(wide_result >> sizeof(T) * 8 & 1) << l;
    d[l] = T(wide_result);
  }
  return Flow::next;
}

// mad and madc: d = low or high half of a · b, + c, + the carry; .cc writes the carry.
template <class T> Flow multiply_carried(Warp& w, const Ins& i, Carry carry, bool high_half) {
  using U = std::make_unsigned_t<T>;
  T *a = lanes<T>(w, i.input(0)), *b = lanes<T>(w, i.input(1));
  U *c = lanes<U>(w, i.input(2)), *d = lanes<U>(w, i.output());
  for (int l = 0; l < LANES; ++l) {
    if (!(w.exec >> l & 1)) continue;
    const U product = high_half ? U(multiply_high(a[l], b[l])) : U(a[l]) * U(b[l]);
    const u128 sum = u128(product) + c[l] + (carry.read ? w.cc >> l & 1 : 0);
    if (carry.write) w.cc = (w.cc & ~(1u << l)) | u32(sum >> sizeof(T) * 8 & 1) << l;
    d[l] = U(sum);
  }
  return Flow::next;
}
template <bool read, bool write, bool subtract, class T> Flow carry(Warp& w, const Ins& i) {
  return add_carried<T>(w, i, {read, write}, subtract);
}
template <bool read, bool write, bool high_half, class T> Flow carry_product(Warp& w,
                                                                             const Ins& i) {
  return multiply_carried<T>(w, i, {read, write}, high_half);
}
template <class T> struct CarryNames {
  const char *mad_lo, *mad_hi, *low, *low_cc, *high, *high_cc;
};
template <class T> void carry_products(Table& t, const CarryNames<T>& n) {
  const std::string shape = letter<T> == 'w' ? "w>www" : "n>nnn";
  add(t, n.mad_lo, carry_product<false, true, false, T>, shape);
  add(t, n.mad_hi, carry_product<false, true, true, T>, shape);
  add(t, n.low, carry_product<true, false, false, T>, shape);
  add(t, n.low_cc, carry_product<true, true, false, T>, shape);
  add(t, n.high, carry_product<true, false, true, T>, shape);
  add(t, n.high_cc, carry_product<true, true, true, T>, shape);
}

}  // namespace

void add_carries(Table& t) {
  add(t, "add.cc.u32", carry<false, true, false, u32>, "n>nn");
  add(t, "addc.u32", carry<true, false, false, u32>, "n>nn");
  add(t, "addc.cc.u32", carry<true, true, false, u32>, "n>nn");
  add(t, "sub.cc.u32", carry<false, true, true, u32>, "n>nn");
  add(t, "subc.u32", carry<true, false, true, u32>, "n>nn");
  add(t, "subc.cc.u32", carry<true, true, true, u32>, "n>nn");
  add(t, "add.cc.u64", carry<false, true, false, u64>, "w>ww");
  add(t, "addc.u64", carry<true, false, false, u64>, "w>ww");
  add(t, "addc.cc.u64", carry<true, true, false, u64>, "w>ww");
  add(t, "sub.cc.u64", carry<false, true, true, u64>, "w>ww");
  add(t, "subc.u64", carry<true, false, true, u64>, "w>ww");
  add(t, "subc.cc.u64", carry<true, true, true, u64>, "w>ww");
#define NAMES(s) \
  {"mad.lo.cc." s, "mad.hi.cc." s, "madc.lo." s, "madc.lo.cc." s, "madc.hi." s, "madc.hi.cc." s}
  carry_products<u32>(t, NAMES("u32"));
  carry_products<i32>(t, NAMES("s32"));
  carry_products<u64>(t, NAMES("u64"));
  carry_products<i64>(t, NAMES("s64"));
#undef NAMES
}

}  // namespace sim
