// Video instructions: arithmetic on bytes and halves of registers. No GPU since Kepler has them
// all; ptxas writes other code for them. Where the PTX ISA says too little, this does as that code
// does (ptxas 13.0 for sm_80): a shift keeps 34 bits, minimum and maximum with c see 32 bits, and a
// vmad with anything signed or negated takes all its operands as signed.
#include <algorithm>

#include "../machine/warp.hpp"
#include "../program/operations.hpp"

namespace sim {
namespace {

enum What : i32 { ADD, SUB, DISTANCE, MIN, MAX, AVERAGE, SHIFT_LEFT, SHIFT_RIGHT, SET, WHATS };
enum Compare : i32 { EQ, NE, LT, LE, GT, GE, COMPARISONS };
enum Second : i32 { MERGE, SUM, LESSER, GREATER, SECONDS };  // what c is for

// Parts that the operation takes from a or b, or from both together: how many bytes each has, and
// which they are, four bits for each part of the result.
struct Selection {
  i32 bytes;
  bool is_signed;
  i32 parts;

  static Selection of(i32 bits) { return {bits & 7, bool(bits >> 3 & 1), bits >> 4}; }
  i64 part(u64 word, u32 k) const {
    const u32 width = 8 * u32(bytes);
    const u64 field = word >> (width * (u32(parts) >> 4 * k & 15)) << (64 - width);
    return is_signed ? i64(field) >> (64 - width) : i64(field >> (64 - width));
  }
  bool sound(i32 count, i32 room) const {
    if (bytes != 1 && bytes != 2 && bytes != 4) return false;
    for (i32 k = 0; k < count; ++k)
      if (((parts >> 4 * k & 15) + 1) * bytes > room) return false;
    return true;
  }
};

// what: the operation, then four bits each: comparison, second operation; wraps, saturates, signed
struct VideoNames { i32 d, a, b, c, what, first, second, result; };
struct Video {
  What what;
  Compare compare;
  Second second;
  bool wraps, saturates, is_signed;
  Selection a, b;
  u32 count;  // parts of the result
  u32 bytes;  // of each
  u32 mask;   // those that are written
  u32 place;  // of the only part

  explicit Video(const Ins& i) {
    const auto o = operands<VideoNames>(i);
    what = What(o.what & 15), compare = Compare(o.what >> 4 & 15),
    second = Second(o.what >> 8 & 15);
    wraps = o.what >> 12 & 1, saturates = o.what >> 13 & 1, is_signed = o.what >> 14 & 1;
    a = Selection::of(o.first), b = Selection::of(o.second);
    count = o.result & 7, bytes = o.result >> 3 & 7, mask = o.result >> 6 & 15;
    place = o.result >> 10 & 3;
  }
  bool sound() const {
    const i32 room = count > 1 ? 8 : 4;
    return what < WHATS && compare < COMPARISONS && second < SECONDS &&
           (count == 1 || count == 2 || count == 4) && (bytes == 1 || bytes == 2 || bytes == 4) &&
           bytes * count <= 4 && bytes * (place + 1) <= 4 && a.sound(i32(count), room) &&
           b.sound(i32(count), room);
  }

  i64 applied(i64 x, i64 y) const {
    const u32 by = u32(wraps ? y & 31 : std::min<i64>(y & 0xffffffff, 32));
    switch (what) {
      case ADD: return x + y;
      case SUB: return x - y;
      case DISTANCE: return x < y ? y - x : x - y;
      case MIN: return std::min(x, y);
      case MAX: return std::max(x, y);
      case AVERAGE: return (x + y + (x + y >= 0)) >> 1;
      case SHIFT_LEFT: return i64(u64(x) << by << 30) >> 30;
      case SHIFT_RIGHT: return x >> by;
      default: return holds(x, y);
    }
  }
  bool holds(i64 x, i64 y) const {
    switch (compare) {
      case EQ: return x == y;
      case NE: return x != y;
      case LT: return x < y;
      case LE: return x <= y;
      case GT: return x > y;
      default: return x >= y;
    }
  }
  i64 fitted(i64 value) const {
    if (!saturates) return value;
    const i64 most = (i64{1} << (8 * bytes - is_signed)) - 1;
    return std::clamp(value, is_signed ? -most - 1 : 0, most);
  }

  i64 of_result(i64 value) const { return is_signed ? i64(i32(value)) : i64(u32(value)); }

  u32 run(u32 x, u32 y, u32 c) const {
    const u64 both = u64(y) << 32 | x;
    i64 sum = of_result(c);
    u32 merged = c;
    for (u32 k = 0; k < count; ++k) {
      if (!(mask >> k & 1)) continue;
      const i64 value =
          fitted(applied(a.part(count > 1 ? both : x, k), b.part(count > 1 ? both : y, k)));
      if (second == SUM) sum += value;
      else if (second == LESSER) sum = std::min(sum, of_result(value));
      else if (second == GREATER) sum = std::max(sum, of_result(value));
      const u32 at = 8 * bytes * (count > 1 ? k : place);
      const u32 field = u32((u64{1} << 8 * bytes) - 1) << at;
      merged = (merged & ~field) | (u32(value) << at & field);
    }
    return second == MERGE ? merged : u32(sum);
  }
};

Flow run_video(Warp& w, const Ins& i) {
  const auto o = operands<VideoNames>(i);
  const Video video(i);
  u32 *d = lanes<u32>(w, o.d), *a = lanes<u32>(w, o.a), *b = lanes<u32>(w, o.b),
      *c = lanes<u32>(w, o.c);
  for (u32 rest = w.exec; rest; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    d[l] = video.run(a[l], b[l], c[l]);
  }
  return Flow::next;
}

// vmad. what: signs of a, b and of the result; negated: product, c; plus one; saturates; shift
Flow run_multiply(Warp& w, const Ins& i) {
  const auto o = operands<VideoNames>(i);
  const Selection first = Selection::of(o.first), second = Selection::of(o.second);
  const bool is_signed = o.what & 1, minus_product = o.what & 2, minus_c = o.what & 4;
  const bool plus_one = o.what & 8, saturates = o.what & 16;
  const u32 shift = u32(o.what) >> 5 & 31;
  u32 *d = lanes<u32>(w, o.d), *a = lanes<u32>(w, o.a), *b = lanes<u32>(w, o.b),
      *c = lanes<u32>(w, o.c);
  for (u32 rest = w.exec; rest; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    using Wide = __int128;
    const auto taken = [&](i64 value) { return is_signed ? Wide(i32(value)) : Wide(value); };
    Wide product = taken(first.part(a[l], 0)) * taken(second.part(b[l], 0));
    if (minus_product) product = -product;
    Wide other = taken(c[l]);
    if (minus_c) other = -other;
    Wide sum = (product + other + plus_one) >> shift;
    const Wide most = is_signed ? INT32_MAX : UINT32_MAX, least = is_signed ? INT32_MIN : 0;
    if (saturates) sum = std::clamp(sum, least, most);
    d[l] = u32(sum);
  }
  return Flow::next;
}

}  // namespace

void add_video(Table& t) {
  add(t, "video", run_video, "n>nnniiii",
      [](const Program&, const Ins& i) { return Video(i).sound(); });
  add(t, "vmad", run_multiply, "n>nnniii", [](const Program&, const Ins& i) {
    const auto o = operands<VideoNames>(i);
    return Selection::of(o.first).sound(1, 4) && Selection::of(o.second).sound(1, 4);
  });
}

}  // namespace sim
