// Undefined values bit by bit, for instructions that move bits: nvcc keeps the members of a union
// in one register and masks, shifts and permutes them into place, also while other bits of it hold
// nothing yet. Elsewhere one undefined bit makes the whole result undefined.
#include <algorithm>
#include <bit>
#include <string>

#include "../machine/machine.hpp"
#include "../program/operations.hpp"
#include "undefined.hpp"

namespace sim {
namespace {

constexpr u64 low_bits(u32 count) { return count >= 64 ? ~u64{0} : (u64{1} << count) - 1; }
constexpr u64 extended(u64 bits, u32 width) {
  return width >= 64 ? bits : u64(i64(bits << (64 - width)) >> (64 - width));
}

using Rule = decltype(BitRule::undefined);

u64 same(const Partial* in, u32) { return in[0].undefined; }
u64 both(const Partial* in, u32) { return in[0].undefined | in[1].undefined; }
u64 conjunction(const Partial* in, u32) {
  const auto [a, b] = std::pair(in[0], in[1]);
  return (a.undefined & (b.undefined | b.value)) | (b.undefined & (a.undefined | a.value));
}
u64 disjunction(const Partial* in, u32) {
  const auto [a, b] = std::pair(in[0], in[1]);
  return (a.undefined & (b.undefined | ~b.value)) | (b.undefined & (a.undefined | ~a.value));
}
// The lowest undefined bit decides: carries go up only.
template <int operands> u64 sum(const Partial* in, u32) {
  u64 any = 0;
  for (int k = 0; k < operands; ++k) any |= in[k].undefined;
  return any | -any;
}
template <bool left, bool is_signed> u64 shifted(const Partial* in, u32 width) {
  if (in[1].undefined) return ~u64{0};
  const u32 by = u32(std::min<u64>(in[1].value, width));
  if (left) return by >= 64 ? 0 : in[0].undefined << by;
  const u64 bits = is_signed ? extended(in[0].undefined, width) : in[0].undefined;
  return by < 64                   ? (is_signed ? u64(i64(bits) >> by) : bits >> by)
         : is_signed && bits >> 63 ? ~u64{0}
                                   : 0;
}
template <bool left, bool wraps> u64 funnel(const Partial* in, u32) {
  if (in[2].undefined) return ~u64{0};
  const u32 by = u32(wraps ? in[2].value & 31 : std::min<u64>(in[2].value, 32));
  const u64 bits = in[1].undefined << 32 | in[0].undefined;
  return left ? bits << by >> 32 : bits >> by;
}
u64 permuted(const Partial* in, u32) {
  if (in[2].undefined) return ~u64{0};
  const u64 bytes = in[1].undefined << 32 | in[0].undefined;
  u64 bits = 0;
  for (u32 k = 0; k < 4; ++k) {
    const u32 pick = in[2].value >> 4 * k & 15;
    const u64 byte = bytes >> 8 * (pick & 7) & 255;
    bits |= (pick & 8 ? 255 * (byte >> 7) : byte) << 8 * k;
  }
  return bits;
}
template <bool is_signed> u64 extracted(const Partial* in, u32 width) {
  const u32 at = in[1].value & 255, count = in[2].value & 255;
  if (in[1].undefined || in[2].undefined) return ~u64{0};
  if (!count) return 0;
  const u64 bits = is_signed ? extended(in[0].undefined, width) : in[0].undefined;
  const u64 moved = is_signed ? u64(i64(bits) >> std::min(at, 63u)) : at < 64 ? bits >> at : 0;
  return is_signed ? extended(moved, std::min(count, 64u)) : moved & low_bits(count);
}
u64 inserted(const Partial* in, u32) {
  if (in[2].undefined || in[3].undefined) return ~u64{0};
  const u32 at = in[2].value & 255;
  const u64 field = at < 64 ? low_bits(in[3].value & 255) << at : 0;
  return (in[1].undefined & ~field) | (at < 64 ? in[0].undefined << at & field : 0);
}
u64 chosen(const Partial* in, u32) {
  return in[2].undefined ? ~u64{0} : in[in[2].value ? 0 : 1].undefined;
}
u64 packed(const Partial* in, u32 width) {
  return in[1].undefined << width / 2 | (in[0].undefined & low_bits(width / 2));
}

// By the name of an operation without its type; the second is for signed types.
struct Rules {
  std::string_view name;
  Rule rule, of_signed;
};
constexpr Rules RULES[] = {
    {"mov", same, same},
    {"not", same, same},
    {"and", conjunction, conjunction},
    {"or", disjunction, disjunction},
    {"xor", both, both},
    {"selp", chosen, chosen},
    {"add", sum<2>, sum<2>},
    {"sub", sum<2>, sum<2>},
    {"mul.lo", sum<2>, sum<2>},
    {"mad.lo", sum<3>, sum<3>},
    {"neg", sum<1>, sum<1>},
    {"shl", shifted<true, false>, shifted<true, false>},
    {"shr", shifted<false, false>, shifted<false, true>},
    {"shf.l.clamp", funnel<true, false>, nullptr},
    {"shf.l.wrap", funnel<true, true>, nullptr},
    {"shf.r.clamp", funnel<false, false>, nullptr},
    {"shf.r.wrap", funnel<false, true>, nullptr},
    {"prmt", permuted, nullptr},
    {"bfe", extracted<false>, extracted<true>},
    {"bfi", inserted, nullptr},
    {"pack", packed, nullptr},
    {"unpack", same, nullptr},
};

struct Type {
  u32 width = 0;  // 0: not one of whole numbers or bits
  bool is_signed = false;
};
Type type_of(std::string_view text) {
  if (text.empty() || std::string_view("bus").find(text[0]) == std::string_view::npos) return {};
  for (const u32 width : {8, 16, 32, 64})
    if (text.substr(1) == std::to_string(width)) return {width, text[0] == 's'};
  return {};
}

}  // namespace

BitRule bit_rule(std::string_view name) {
  // `i >= n || a[i] > x` is decided where i >= n is.
  if (name == "and.pred") return {conjunction, 1, false, 1, false};
  if (name == "or.pred") return {disjunction, 1, false, 1, false};
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {};
  const std::string_view base = name.substr(0, dot);
  const Type type = type_of(name.substr(dot + 1));
  if (!type.width) return {};
  if (base.starts_with("cvt.r.")) {
    const Type to = type_of(base.substr(6));
    return to.width ? BitRule{same, to.width, to.is_signed, type.width, type.is_signed} : BitRule{};
  }
  for (const Rules& known : RULES)
    if (known.name == base)
      return {type.is_signed ? known.of_signed : known.rule, type.width, false, 64, false};
  return {};
}

bool propagate_bits(Warp& w, const Ins& i) {
  const Named& named = *w.program->named[w.pc];
  const BitRule& rule = named.bits;
  if (!rule.undefined || (i.guard >= 0 && w.pred_undefined[i.guard] & w.exec)) return false;
  const size_t outputs = named.shape.find('>'), inputs = named.shape.size() - outputs - 1;
  u32 suspect = 0, origin = 0, bad[2] = {};
  for (size_t k = 0; k < inputs; ++k) {
    const i32 slot = i.o[outputs + k];
    const bool predicate = named.shape[outputs + 1 + k] == 'p';
    const u32 lanes = (predicate ? w.pred_undefined : w.undefined)[slot] & w.exec;
    if (lanes) origin = (predicate ? w.pred_origin : w.origin)[slot];
    suspect |= lanes;
  }
  if (!suspect) return false;
  for (u32 rest = suspect; rest; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    Partial in[4];
    for (size_t k = 0; k < inputs; ++k) {
      const i32 slot = i.o[outputs + k];
      const char kind = named.shape[outputs + 1 + k];
      if (kind == 'p') {
        in[k] = {w.preds[slot] >> l & 1, w.pred_undefined[slot] >> l & 1};
        continue;
      }
      in[k].value = kind == 'w' ? lanes<u64>(w, slot)[l] : lanes<u32>(w, slot)[l];
      in[k].undefined = undefined_bits(w, slot, l) & low_bits(kind == 'w' ? 64 : 32);
    }
    in[0].undefined = rule.from_signed ? extended(in[0].undefined, rule.from)
                                       : in[0].undefined & low_bits(rule.from);
    u64 bits = rule.undefined(in, rule.width);
    bits = rule.is_signed ? extended(bits, rule.width) : bits & low_bits(rule.width);
    for (size_t k = 0; k < outputs; ++k) {
      const u32 width = outputs > 1 ? rule.width / 2 : 64;
      const u64 part = outputs > 1 ? bits >> k * width & low_bits(width) : bits;
      const u64 kept = named.shape[k] == 'w' ? part : u32(part);
      if (i.o[k] < 0 || !kept) continue;
      bad[k] |= 1u << l;
      if (named.shape[k] == 'p') continue;
      w.undefined_bits[size_t(i.o[k]) * LANES + l] = kept;
    }
  }
  for (size_t k = 0; k < outputs; ++k) {
    if (i.o[k] < 0) continue;
    const bool predicate = named.shape[k] == 'p';
    u32& lanes = (predicate ? w.pred_undefined : w.undefined)[i.o[k]];
    lanes = (lanes & ~w.exec) | bad[k];
    if (bad[k]) (predicate ? w.pred_origin : w.origin)[i.o[k]] = origin;
  }
  return true;
}

}  // namespace sim
