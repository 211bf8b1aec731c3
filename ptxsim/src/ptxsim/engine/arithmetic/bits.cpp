// Shifts and fields of bits; logic.
#include <algorithm>
#include <bit>

#include "lanewise.hpp"

namespace sim {
namespace {

template <class T> T shift_left(T a, u32 b) { return b >= sizeof(T) * 8 ? T(0) : T(a << b); }

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
// The low n bits of a, extended by their sign if the type has one.
template <class T> T extend(T a, u32 n) {
  if (!n) return 0;
  const u32 above = n < 32 ? 32 - n : 0;
  return T(u32(a) << above) >> above;
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

u32 nth_set(u32 mask, u32 base, i32 offset) {
  const i32 step = offset < 0 ? -1 : 1;
  i64 left = offset == 0 ? 1 : std::abs(i64(offset));
  for (i32 at = i32(base); at >= 0 && at < 32; at += offset == 0 ? 32 : step)
    if (mask >> at & 1 && --left == 0) return u32(at);
  return ~0u;
}

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

}  // namespace

void add_bits(Table& t) {
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
  rarely(t, "brev.b32", [](u32 a) { return reverse(a); });
  rarely(t, "brev.b64", [](u64 a) { return u64(reverse(u32(a))) << 32 | reverse(u32(a >> 32)); });
  rarely(t, "bfind.u32", [](u32 a) { return find_high(a, false); });
  rarely(t, "bfind.s32", [](i32 a) { return find_high(a, false); });
  rarely(t, "bfind.u64", [](u64 a) { return find_high(a, false); });
  rarely(t, "bfind.s64", [](i64 a) { return find_high(a, false); });
  rarely(t, "bfind.shiftamt.u32", [](u32 a) { return find_high(a, true); });
  rarely(t, "bfind.shiftamt.s32", [](i32 a) { return find_high(a, true); });
  rarely(t, "bfind.shiftamt.u64", [](u64 a) { return find_high(a, true); });
  rarely(t, "bfind.shiftamt.s64", [](i64 a) { return find_high(a, true); });
  rarely(t, "bfe.u32", [](u32 a, u32 b, u32 c) { return extract(a, b, c); });
  rarely(t, "bfe.s32", [](i32 a, u32 b, u32 c) { return extract(a, b, c); });
  rarely(t, "bfe.u64", [](u64 a, u32 b, u32 c) { return extract(a, b, c); });
  rarely(t, "bfe.s64", [](i64 a, u32 b, u32 c) { return extract(a, b, c); });
  rarely(t, "bfi.b32", [](u32 a, u32 b, u32 c, u32 d) { return insert(a, b, c, d); });
  rarely(t, "bfi.b64", [](u64 a, u64 b, u32 c, u32 d) { return insert(a, b, c, d); });
  rarely(t, "bmsk.clamp.b32",
         [](u32 a, u32 b) { return a >= 32 ? 0u : (b >= 32 ? ~0u : (1u << b) - 1) << a; });
  rarely(t, "bmsk.wrap.b32", [](u32 a, u32 b) { return ((1u << (b & 31)) - 1) << (a & 31); });
  rarely(t, "szext.clamp.s32", [](i32 a, u32 b) { return extend(a, b); });
  rarely(t, "szext.clamp.u32", [](u32 a, u32 b) { return extend(a, b); });
  rarely(t, "szext.wrap.s32", [](i32 a, u32 b) { return extend(a, b & 31); });
  rarely(t, "szext.wrap.u32", [](u32 a, u32 b) { return extend(a, b & 31); });
  lanewise(t, "prmt.b32", [](u32 a, u32 b, u32 c) { return permute(a, b, c); });
  rarely(t, "prmt.f4e.b32", [](u32 a, u32 b, u32 c) { return permute(a, b, picks(c, 'f')); });
  rarely(t, "prmt.b4e.b32", [](u32 a, u32 b, u32 c) { return permute(a, b, picks(c, 'b')); });
  rarely(t, "prmt.rc8.b32", [](u32 a, u32 b, u32 c) { return permute(a, b, picks(c, '8')); });
  rarely(t, "prmt.ecl.b32", [](u32 a, u32 b, u32 c) { return permute(a, b, picks(c, 'l')); });
  rarely(t, "prmt.ecr.b32", [](u32 a, u32 b, u32 c) { return permute(a, b, picks(c, 'r')); });
  rarely(t, "prmt.rc16.b32", [](u32 a, u32 b, u32 c) { return permute(a, b, picks(c, '6')); });
  rarely(t, "fns.b32", [](u32 a, u32 b, i32 c) { return nth_set(a, b, c); });
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
  rarely(t, "cnot.b16", [](u16 a) { return u16(a == 0); });
  rarely(t, "cnot.b64", [](u64 a) { return u64(a == 0); });
  rarely(t, "cnot.b32", [](u32 a) { return u32(a == 0); });
  lanewise(t, "and.b64", [](u64 a, u64 b) { return a & b; });
  lanewise(t, "or.b64", [](u64 a, u64 b) { return a | b; });
  lanewise(t, "xor.b64", [](u64 a, u64 b) { return a ^ b; });
  lanewise(t, "not.b64", [](u64 a) { return ~a; });
  lanewise(t, "and.pred", [](bool a, bool b) { return a && b; });
  lanewise(t, "or.pred", [](bool a, bool b) { return a || b; });
  lanewise(t, "xor.pred", [](bool a, bool b) { return a != b; });
  lanewise(t, "not.pred", [](bool a) { return !a; });
  add(t, "lop3.b32", run_lop3, "n>nnn");
  lanewise(t, "selp.b16", [](u16 a, u16 b, bool p) { return p ? a : b; });
  lanewise(t, "selp.b32", [](u32 a, u32 b, bool p) { return p ? a : b; });
  lanewise(t, "selp.b64", [](u64 a, u64 b, bool p) { return p ? a : b; });
  rarely(t, "slct.b32.s32", [](u32 a, u32 b, i32 c) { return c >= 0 ? a : b; });
  rarely(t, "slct.b32.f32", [](u32 a, u32 b, float c) { return c >= 0 ? a : b; });
  rarely(t, "slct.b16.s32", [](u16 a, u16 b, i32 c) { return c >= 0 ? a : b; });
  rarely(t, "slct.b16.f32", [](u16 a, u16 b, float c) { return c >= 0 ? a : b; });
  rarely(t, "slct.b64.f32", [](u64 a, u64 b, float c) { return c >= 0 ? a : b; });
  rarely(t, "slct.b64.s32", [](u64 a, u64 b, i32 c) { return c >= 0 ? a : b; });
}

}  // namespace sim
