// ld, st, atom and red in every space; cvta; prefetches and fences.
#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "../arithmetic/lanewise.hpp"
#include "../checks/doubts.hpp"
#include "../checks/global_races.hpp"
#include "../checks/knowledge.hpp"
#include "../checks/shared_races.hpp"
#include "../checks/undefined.hpp"
#include "../schedule/waiting.hpp"
#include "cluster_addresses.hpp"
#include "cost.hpp"

namespace sim {
namespace {

constexpr u64 PARAM_WINDOW = u64{3} << 56;

// Element at `offset` of what each lane in `mask` points to. A signed element extends its sign, as
// ld.s8 does.
// NOLINTBEGIN(bugprone-signed-char-misuse)
template <class M, class R> void spread(const u8* const* from, u32 offset, u32 mask, R* out) {
  if (mask == ALL) {
    for (int l = 0; l < LANES; ++l) {
      M value;
      std::memcpy(&value, from[l] + offset, sizeof value);
      out[l] = R(value);
    }
    return;
  }
  for (int l = 0; l < LANES; ++l) {
    if (!(mask >> l & 1)) continue;
    M value;
    std::memcpy(&value, from[l] + offset, sizeof value);
    out[l] = R(value);
  }
}
// NOLINTEND(bugprone-signed-char-misuse)

template <class R> void spread(const Ins& i, const u8* const* from, u32 offset, u32 mask, R* out) {
  const bool sign = i.flags & SIGNED;
  switch (i.width) {
    case 1: sign ? spread<i8>(from, offset, mask, out) : spread<u8>(from, offset, mask, out); break;
    case 2:
      sign ? spread<i16>(from, offset, mask, out) : spread<u16>(from, offset, mask, out);
      break;
    case 4:
      sign ? spread<i32>(from, offset, mask, out) : spread<u32>(from, offset, mask, out);
      break;
    default: spread<u64>(from, offset, mask, out);
  }
}

// Element `v` of each lane's access, from memory into its register.
void into_register(Warp& w, const Ins& i, int v, const u8* const* from, u32 offset, u32 mask) {
  if (i.element(v) < 0) return;
  if (i.dwidth == 8) spread(i, from, offset, mask, lanes<u64>(w, i.element(v)));
  else spread(i, from, offset, mask, lanes<u32>(w, i.element(v)));
}

// Where each lane's bytes live in the simulator's own memory.
struct Places { u8* at[LANES]; };

void zero_register(Warp& w, const Ins& i, int v, u32 mask) {
  static const u8 zeros[16] = {};
  const u8* from[LANES];
  std::fill(from, from + LANES, zeros);
  into_register(w, i, v, from, 0, mask);
}

void finish_load(Warp& w, const Ins& i, const Places& p, u32 mask, const u32* undefined,
                 const u32* origin) {
  for (int v = 0; v < i.vec; ++v) {
    if (mask != w.exec) zero_register(w, i, v, w.exec & ~mask);
    into_register(w, i, v, p.at, v * i.width, mask);
    if (i.element(v) >= 0 && (undefined[v] || w.tainted))
      mark_undefined(w, i.element(v), undefined[v], origin[v]);
  }
}

void load_shared(Warp& w, const Ins& i, Access& a) {
  if (!familiar(w, a, SHARED)) {
    drop_misaligned(w, a, SHARED, false);
    if (a.mask) settle_shared(w, a, false);
    count_shared(w, a);
  }
  Places p;
  u32 undefined[8] = {}, origin[8] = {};
  const bool plain = !(i.flags & SYNCHRONISES);
  if (__builtin_expect(plain && is_doubted(w), 0)) {
    std::fill(undefined, undefined + i.vec, a.mask);
    std::fill(origin, origin + i.vec, w.pc);
  }
  const bool doubted = undefined[0];
  Signal signal(w, w.block->flags, true);
  u8* base = w.block->shared.data();
  SharedReader reader(w);
  const u32 elements = i.vec, width = i.width;
  for (int l = 0; l < LANES; ++l)
    if (a.mask == ALL || a.mask >> l & 1) p.at[l] = base + a.at[l];
  for (int l = 0; l < LANES; ++l) {
    if (!(a.mask >> l & 1) || w.block->machine->sampling || doubted) continue;
    if (!plain) signal.read(a.at[l]);
    // Two lanes that read an address have said all there is to say about a third.
    const bool third =
        l >= 2 && (a.mask >> (l - 2) & 3) == 3 && a.at[l] == a.at[l - 1] && a.at[l] == a.at[l - 2];
    for (u32 v = 0; v < elements; ++v)
      if (!third) {
        const bool bad = reader.read(l, u32(a.at[l]) + v * width, width, plain, origin[v]);
        undefined[v] |= u32(bad) << l;
      } else if (__builtin_expect(undefined[v] != 0, 0)) {
        undefined[v] |= (undefined[v] >> (l - 1) & 1) << l;
      }
  }
  finish_load(w, i, p, a.mask, undefined, origin);
}

void load_global(Warp& w, const Ins& i, Access& a, u8 space) {
  Region* common;
  if (familiar(w, a, space)) {
    common = w.block->machine->regions[w.program->hints[w.pc].region].get();
  } else {
    drop_misaligned(w, a, space, false);
    common = a.mask ? settle_global(w, a, space, false) : nullptr;
    count_global(w, a);
  }
  Places p;
  u32 undefined[8] = {}, origin[8] = {};
  std::fill(origin, origin + 8, w.pc);
  const bool plain = !(i.flags & SYNCHRONISES);
  if (!plain) w.block->fenced = true;
  Signal signal(w, w.block->machine->flags, true);
  for (int l = 0; l < LANES; ++l) {
    if (!(a.mask >> l & 1)) continue;
    i64 index = hint_of(w, space).region;
    Region& r = common ? *common : *w.block->machine->find(a.at[l], index);
    p.at[l] = r.data + (a.at[l] - r.base);
    if (!plain) signal.read(a.at[l]);
    if (r.all_defined && r.stamps.empty()) continue;
    for (int v = 0; v < i.vec; ++v)
      undefined[v] |= u32(global_read(w, l, r, index, a.at[l] + u64(v) * i.width, i.width, plain))
                      << l;
  }
  if (plain && common && space == GLOBAL) remember_reads(w, *common, a);
  trace(w, a, plain ? READ : READ_STRONGLY);
  finish_load(w, i, p, a.mask, undefined, origin);
}

// Local memory and kernel parameters: plain bytes, bounds checked.
const SharedArray* private_range(const Program& p, u64 address, u32 bytes) {
  for (const SharedArray& r : p.private_ranges)
    if (within(address, bytes, r.start, r.size)) return &r;
  return nullptr;
}

void settle_private(Warp& w, Access& a, u8 space, Places& p, bool write) {
  const std::vector<u8>& params = w.block->machine->params;
  Hint& hint = hint_of(w, space);
  for (int l = 0; l < LANES; ++l) {
    if (!(a.mask >> l & 1)) continue;
    if (!hint.holds(a.at[l], a.at[l], a.bytes)) {
      bool inside = within(a.at[l], a.bytes, params.size());
      hint.low = 0;
      hint.high = params.size();
      if (space == LOCAL) {
        const SharedArray* r = private_range(*w.program, a.at[l], a.bytes);
        inside = r;
        hint.low = r ? r->start : 1;
        hint.high = r ? u64(r->start) + r->size : 0;
      }
      if (!inside) {
        Event e = event_at(w, OUT_OF_BOUNDS, l);
        e.address = a.at[l];
        e.size = a.bytes;
        e.space = space;
        e.write = write;
        w.block->machine->report(e);
        a.mask &= ~(1u << l);
        continue;
      }
    }
    p.at[l] = space == LOCAL ? w.local.data() + u64(l) * w.program->local_bytes + a.at[l]
                             : const_cast<u8*>(params.data()) + a.at[l];
  }
}

void load_private(Warp& w, const Ins& i, Access& a, u8 space) {
  Places p{};
  settle_private(w, a, space, p, false);
  u32 undefined[8] = {}, origin[8] = {};
  finish_load(w, i, p, a.mask, undefined, origin);
}

// Splits a generic access by the space each lane's address lies in.
template <class F> void by_space(const Access& all, F f) {
  u32 left = all.mask;
  while (left) {
    u64 window = all.at[__builtin_ctz(left)] >> 56;
    Access part = all;
    part.mask = 0;
    for (int l = 0; l < LANES; ++l)
      if (left >> l & 1 && all.at[l] >> 56 == window) part.mask |= 1u << l;
    left &= ~part.mask;
    u64 first = part.at[part.first()];
    for (int l = 0; l < LANES; ++l)
      part.at[l] = (part.mask >> l & 1 ? part.at[l] : first) & (window > 3 ? ~u64{0} : OFFSET_MASK);
    f(part, window == 1 ? SHARED : window == 2 ? LOCAL : window == 3 ? PARAM : GLOBAL);
  }
}

// Resolves the addresses and calls `f(access, space)`, once for every space that a generic access
// touches.
template <class F> void in_spaces(Warp& w, const Ins& i, F f) {
  Access a;
  resolve_addresses(w, i, a);
  if (i.space != GENERIC && !(i.space == SHARED && w.home->cluster)) return f(a, i.space);
  const u32 exec = w.exec;
  const auto in_space = [&](Access& part, u8 space) {
    w.exec = part.mask;
    if (space == SHARED && w.home->cluster)
      by_block(w, part, [&](Access& of_block) {
        w.exec = of_block.mask;
        f(of_block, SHARED);
      });
    else f(part, space);
  };
  if (i.space == GENERIC) by_space(a, in_space);
  else in_space(a, SHARED);
  w.exec = exec;
}

bool is_access(const Program&, const Ins& i) {
  const auto power = [](u32 n, u32 most) { return n && n <= most && !(n & (n - 1)); };
  return power(i.width, 8) && power(i.vec, 4) && i.width <= i.dwidth;
}

// Where only some blocks run, the counter of grid.sync() changes at the second look, as if the
// others had come.
void open_barrier(const Warp& w, const Access& a) {
  Machine& m = *w.block->machine;
  if (!m.sampling || !m.workspace || !a.mask || a.at[a.first()] != m.counter()) return;
  i64 index;
  const Region* region = m.find(m.workspace, index);
  if (region && region->base == m.workspace && region->size >= 8) region->data[7] ^= 0x80;
}

Flow load(Warp& w, const Ins& i) {
  in_spaces(w, i, [&](Access& a, u8 space) {
    if (space == SHARED) load_shared(w, i, a);
    else if (space == LOCAL || space == PARAM) load_private(w, i, a, space);
    else load_global(w, i, a, space);
    if (i.flags & SYNCHRONISES) open_barrier(w, a);
  });
  if (!(i.flags & SYNCHRONISES) || i.element(0) < 0 || w.block->machine->sampling)
    return Flow::next;
  return look_at(w, i, i.element(0), i.dwidth);
}

// --- stores

u64 lane_value(Warp& w, const Ins& i, i32 slot, int lane) {
  return i.dwidth == 8 ? lanes<u64>(w, slot)[lane] : lanes<u32>(w, slot)[lane];
}

template <class T> bool put(u8* at, u64 value) {
  const T after = T(value);
  T before;
  std::memcpy(&before, at, sizeof before);
  std::memcpy(at, &after, sizeof after);
  return before == after;
}

// Stores the low `width` bytes; whether they were there already.
bool put(u8* at, u64 value, u32 width) {
  switch (width) {
    case 1: return put<u8>(at, value);
    case 2: return put<u16>(at, value);
    case 4: return put<u32>(at, value);
    default: return put<u64>(at, value);
  }
}

void store_to(Warp& w, const Ins& i, Access& a, u8 space) {
  const bool plain = !(i.flags & SYNCHRONISES);
  Places p{};
  Region* common = nullptr;
  if (space == LOCAL || space == PARAM) {
    settle_private(w, a, space, p, true);
  } else {
    if (familiar(w, a, space)) {
      if (space != SHARED) common = w.block->machine->regions[w.program->hints[w.pc].region].get();
    } else {
      drop_misaligned(w, a, space, true);
      if (a.mask && space == SHARED) settle_shared(w, a, true);
      else if (a.mask) common = settle_global(w, a, space, true);
      space == SHARED ? count_shared(w, a) : count_global(w, a);
    }
    if (space != SHARED) {
      trace(w, a, plain ? WRITTEN : WRITTEN_STRONGLY);
      if (!plain) w.block->fenced = true;
      for (int v = 0; v < i.vec; ++v) check_defined(w, i.element(v), UNDEFINED_STORE, false);
    }
  }
  Signal signal(w, space == SHARED ? w.block->flags : w.block->machine->flags, true);
  for (int l = 0; l < LANES; ++l) {
    if (!(a.mask >> l & 1)) continue;
    i64 index = w.program->hints[w.pc].region;
    Region* r = nullptr;
    if (!plain && (space == SHARED || space == GLOBAL)) signal.raise(a.at[l]);
    if (space == SHARED) p.at[l] = w.block->shared.data() + a.at[l];
    else if (space == GLOBAL) {
      r = common ? common : w.block->machine->find(a.at[l], index);
      p.at[l] = r->data + (a.at[l] - r->base);
    }
    for (int v = 0; v < i.vec; ++v) {
      u64 value = lane_value(w, i, i.element(v), l);
      u8* at = p.at[l] + u64(v) * i.width;
      const bool same = put(at, value, i.width);
      if (space == SHARED || space == GLOBAL) {
        u64 address = a.at[l] + u64(v) * i.width;
        if (space == SHARED)
          shared_write(w, l, u32(address), i.width, same && plain, false,
                       undefined_origin(w, i.element(v), l));
        else global_write(w, l, *r, index, address, i.width, same, false, plain);
        w.block->machine->changes += !same && space == GLOBAL;
      }
    }
  }
}

Flow store(Warp& w, const Ins& i) {
  in_spaces(w, i, [&](Access& a, u8 space) { store_to(w, i, a, space); });
  return Flow::next;
}

// --- atomics

// old: -1 for red; swapped: what cas writes, else -1
struct AtomicOperands { i32 old, value, swapped; };

// NaN is the same as itself, and the two zeros differ.
template <class T> bool same_bits(const T& a, const T& b) {
  using Bytes = std::array<u8, sizeof(T)>;
  return std::bit_cast<Bytes>(a) == std::bit_cast<Bytes>(b);
}

template <class T, class F> void atomic_on(Warp& w, const Ins& i, Access& a, u8 space, F f) {
  const auto o = operands<AtomicOperands>(i);
  drop_misaligned(w, a, space, true);
  Region* common = nullptr;
  if (space == SHARED) {
    if (a.mask) settle_shared(w, a, true);
    count_shared(w, a);
  } else {
    if (a.mask) common = settle_global(w, a, space, true);
    count_global(w, a);
    check_defined(w, o.value, UNDEFINED_STORE, false);
    if (i.flags & SYNCHRONISES) w.block->fenced = true;
    trace(w, a, o.old < 0 ? WRITTEN_STRONGLY : Use(WRITTEN_STRONGLY | READ_STRONGLY));
  }
  Source<T> b(w, o.value), c(w, o.swapped < 0 ? o.value : o.swapped);
  auto* old = o.old < 0 ? nullptr : lanes<typename Lane<T>::Cell>(w, o.old);
  const bool shared = space == SHARED;
  Signal signal(w, shared ? w.block->flags : w.block->machine->flags,
                (shared ? w.block->fenced_within : w.block->fenced) || i.flags & SYNCHRONISES);
  u32 undefined = 0, origin = w.pc;
  for (int l = 0; l < LANES; ++l) {
    if (!(a.mask >> l & 1)) continue;
    i64 index = w.program->hints[w.pc].region;
    Region* r = space == SHARED ? nullptr
                : common        ? common
                                : w.block->machine->find(a.at[l], index);
    u8* at = r ? r->data + (a.at[l] - r->base) : w.block->shared.data() + a.at[l];
    T before;
    std::memcpy(&before, at, sizeof before);
    T after = f(before, b[l], c[l]);
    const bool same = same_bits(before, after);
    if (old) signal.read(a.at[l]);
    if (!same) signal.raise(a.at[l]);
    if (r && sizeof(T) == 4 && a.at[l] == w.block->machine->counter()) {
      const auto top = [](const T& value) { return reinterpret_cast<const u8*>(&value)[3] & 0x80; };
      if (top(before) != top(after)) signal.open();
    }
    w.block->machine->changes += !same;
    bool bad;
    if (r) {
      bad = !r->all_defined && !r->defined[(a.at[l] - r->base) >> w.program->global_shift];
      if (bad) {
        Event e = event_at(w, UNDEFINED_STORE, l);
        e.region = index;
        e.region_start = e.address = r->base;
        w.block->machine->report(e);
      }
      global_write(w, l, *r, index, a.at[l], sizeof(T), false, true, true);
    } else {
      const Cell& cell = w.block->cells[a.at[l] >> w.program->shared_shift];
      bad = !cell.writer || cell.writer_pc & UNDEFINED_BIT;
      shared_write(w, l, u32(a.at[l]), sizeof(T), false, true, bad ? w.pc : DEFINED);
    }
    undefined |= u32(bad) << l;
    std::memcpy(at, &after, sizeof after);
    if (old) old[l] = to_cell<T>(before);
  }
  if (old && (undefined || w.tainted)) mark_undefined(w, o.old, undefined, origin);
}

template <class T, class F> Flow atomic(Warp& w, const Ins& i) {
  in_spaces(w, i, [&](Access& a, u8 space) { atomic_on<T>(w, i, a, space, F{}); });
  const i32 old = operands<AtomicOperands>(i).old;
  if (old < 0 || w.block->machine->sampling) return Flow::next;
  return look_at(w, i, old, sizeof(typename Lane<T>::Cell));
}

template <class T, class F> void atom(Table& t, const char* name, F) {
  const char type = letter<T>, old = letter<T> == 'w' ? 'W' : 'N';
  const bool compares = std::string_view(name).starts_with("atom.cas.");
  t.push_back({name,
               atomic<T, F>,
               {old, '>', type, compares ? type : '-', '-', 'a'},
               [](const Program&, const Ins& i) {
                 return i.width == sizeof(T) && i.vec == 1 &&
                        (i.space == GLOBAL || i.space == SHARED || i.space == GENERIC);
               }});
}

template <class T> u16 half_add(u16 a, u16 b) {
  return rounded_to<T>(double(float(T{a})) + double(float(T{b})), 'n').bits;
}
template <class T> u32 half2_add(u32 a, u32 b) {
  const u16 low = half_add<T>(u16(a), u16(b)), high = half_add<T>(u16(a >> 16), u16(b >> 16));
  return u32(high) << 16 | low;
}

void add_atomics(Table& t) {
  atom<u32>(t, "atom.add.u32", [](u32 a, u32 b, u32) { return a + b; });
  atom<u64>(t, "atom.add.u64", [](u64 a, u64 b, u64) { return a + b; });
  atom<float>(t, "atom.add.f32", [](float a, float b, float) { return a + b; });
  atom<double>(t, "atom.add.f64", [](double a, double b, double) { return a + b; });
  atom<u16>(t, "atom.add.f16", [](u16 a, u16 b, u16) { return half_add<Half>(a, b); });
  atom<u16>(t, "atom.add.bf16", [](u16 a, u16 b, u16) { return half_add<Bfloat>(a, b); });
  atom<u32>(t, "atom.add.f16x2", [](u32 a, u32 b, u32) { return half2_add<Half>(a, b); });
  atom<u32>(t, "atom.add.bf16x2", [](u32 a, u32 b, u32) { return half2_add<Bfloat>(a, b); });
  atom<u32>(t, "atom.and.b32", [](u32 a, u32 b, u32) { return a & b; });
  atom<u32>(t, "atom.or.b32", [](u32 a, u32 b, u32) { return a | b; });
  atom<u32>(t, "atom.xor.b32", [](u32 a, u32 b, u32) { return a ^ b; });
  atom<u64>(t, "atom.and.b64", [](u64 a, u64 b, u64) { return a & b; });
  atom<u64>(t, "atom.or.b64", [](u64 a, u64 b, u64) { return a | b; });
  atom<u64>(t, "atom.xor.b64", [](u64 a, u64 b, u64) { return a ^ b; });
  atom<u32>(t, "atom.exch.b32", [](u32, u32 b, u32) { return b; });
  atom<u64>(t, "atom.exch.b64", [](u64, u64 b, u64) { return b; });
  atom<u16>(t, "atom.cas.b16", [](u16 a, u16 b, u16 c) { return a == b ? c : a; });
  atom<u32>(t, "atom.cas.b32", [](u32 a, u32 b, u32 c) { return a == b ? c : a; });
  atom<u64>(t, "atom.cas.b64", [](u64 a, u64 b, u64 c) { return a == b ? c : a; });
  atom<u32>(t, "atom.inc.u32", [](u32 a, u32 b, u32) { return a >= b ? 0u : a + 1; });
  atom<u32>(t, "atom.dec.u32", [](u32 a, u32 b, u32) { return a == 0 || a > b ? b : a - 1; });
  atom<u32>(t, "atom.min.u32", [](u32 a, u32 b, u32) { return std::min(a, b); });
  atom<u32>(t, "atom.max.u32", [](u32 a, u32 b, u32) { return std::max(a, b); });
  atom<i32>(t, "atom.min.s32", [](i32 a, i32 b, i32) { return std::min(a, b); });
  atom<i32>(t, "atom.max.s32", [](i32 a, i32 b, i32) { return std::max(a, b); });
  atom<u64>(t, "atom.min.u64", [](u64 a, u64 b, u64) { return std::min(a, b); });
  atom<u64>(t, "atom.max.u64", [](u64 a, u64 b, u64) { return std::max(a, b); });
  atom<i64>(t, "atom.min.s64", [](i64 a, i64 b, i64) { return std::min(a, b); });
  atom<i64>(t, "atom.max.s64", [](i64 a, i64 b, i64) { return std::max(a, b); });
}

// --- addresses between spaces

template <u64 window> Flow to_generic(Warp& w, const Ins& i) {
  u64 *d = lanes<u64>(w, i.output()), *s = lanes<u64>(w, i.input(0));
  for (int l = 0; l < LANES; ++l)
    if (w.exec >> l & 1) d[l] = s[l] | window;
  return Flow::next;
}
Flow from_generic(Warp& w, const Ins& i) {
  u64 *d = lanes<u64>(w, i.output()), *s = lanes<u64>(w, i.input(0));
  for (int l = 0; l < LANES; ++l)
    if (w.exec >> l & 1) d[l] = s[l] & OFFSET_MASK;
  return Flow::next;
}
template <u64 window> Flow is_space(Warp& w, const Ins& i) {
  u64* s = lanes<u64>(w, i.input(0));
  u32 mask = 0;
  for (int l = 0; l < LANES; ++l) mask |= u32(s[l] >> 56 == window >> 56) << l;
  w.preds[i.output()] = (w.preds[i.output()] & ~w.exec) | (mask & w.exec);
  return Flow::next;
}

template <bool wide> Flow fence(Warp& w, const Ins&) {
  w.block->fenced |= wide;
  w.block->fenced_within = true;
  if (!w.program->relaxes) return Flow::next;
  w.learn(w.acquired);
  w.released = w.now_for_others();
  if (wide) w.released_to_all = w.released;
  w.tick();
  return Flow::next;
}

}  // namespace

bool is_load(const Ins& i) { return i.run == load; }

void add_memory(Table& t) {
  t.push_back({"ld", load, "VVVV>a", is_access});
  t.push_back({"st", store, ">vVVVa", [](const Program& p, const Ins& i) {
                 return is_access(p, i) && i.space != CONST &&
                        std::all_of(i.o, i.o + i.vec, [](i32 o) { return o >= 0; });
               }});
  add_atomics(t);
  t.push_back({"cvta.shared", to_generic<SHARED_WINDOW>, "w>w"});
  t.push_back({"cvta.local", to_generic<LOCAL_WINDOW>, "w>w"});
  t.push_back({"cvta.param", to_generic<PARAM_WINDOW>, "w>w"});
  t.push_back({"cvta.to", from_generic, "w>w"});
  t.push_back({"isspacep.shared", is_space<SHARED_WINDOW>, "p>w"});
  t.push_back({"isspacep.local", is_space<LOCAL_WINDOW>, "p>w"});
  t.push_back({"isspacep.global", is_space<0>, "p>w"});
  t.push_back({"fence", fence<true>, ">"});
  t.push_back({"fence.cta", fence<false>, ">"});
}

}  // namespace sim
