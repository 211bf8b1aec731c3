// ld.
#include <algorithm>

#include "../arithmetic/lanewise.hpp"
#include "../checks/conflicts.hpp"
#include "../checks/early_looks.hpp"
#include "../checks/suspect_reads.hpp"
#include "../checks/global_races.hpp"
#include "../checks/release_acquire.hpp"
#include "../checks/peers.hpp"
#include "../checks/shared_races.hpp"
#include "../checks/undefined.hpp"
#include "../program/kinds.hpp"
#include "../schedule/waiting.hpp"
#include "cost.hpp"
#include "spaces.hpp"

namespace sim {
namespace {

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

// Whether the load asks a flag, as all that synchronise do; a volatile one only if a loop waits for
// it or, for global memory, may wait in a function that calls this one.
bool is_asking(const Ins& i, u8 space) {
  const i32 asking = space == SHARED ? AWAITED : AWAITED | PASSED_ON;
  return i.flags & SYNCHRONISES && (!(i.order() & VOLATILE) || i.order() & asking);
}

u32 doubted_in(Warp& w, const Access& a, u32 shift, bool plain) {
  return __builtin_expect(w.block->machine->looks_again && plain, 0)
             ? doubted_lanes(w, a, 1u << shift)
             : 0;
}

void load_shared(Warp& w, const Ins& i, Access& a) {
  if (!familiar(w, a, SHARED)) {
    drop_misaligned(w, a, SHARED, false);
    if (a.mask) settle_shared(w, a, false);
    count_shared(w, a);
  }
  Places p;
  u32 undefined[8] = {}, origin[8] = {};
  const bool asks = is_asking(i, SHARED), plain = !asks;
  const u32 doubted = doubted_in(w, a, w.program->shared_shift, plain);
  if (__builtin_expect(doubted, 0)) {
    std::fill(undefined, undefined + i.vec, doubted);
    std::fill(origin, origin + i.vec, w.pc);
  }
  Signal signal(w, SHARED, i.order());
  u8* base = w.block->shared.data();
  SharedReader reader(w);
  const u32 elements = i.vec, width = i.width;
  for (int l = 0; l < LANES; ++l)
    if (a.mask == ALL || a.mask >> l & 1) p.at[l] = base + a.at[l];
  for (int l = 0; l < LANES; ++l) {
    if (!((a.mask & ~doubted) >> l & 1) || w.block->machine->sampling) continue;
    if (__builtin_expect(asks, 0)) {
      signal.load(a.at[l]);
      const u64 place = shared_place(*w.block, u32(a.at[l]));
      await(w, place, a.bytes, 1u << w.program->shared_shift);
      if (i.order() & AWAITED)
        w.observe(place, last_writer(*w.block, u32(a.at[l]) >> w.program->shared_shift), l);
    }
    // Two lanes that read an address have said all there is to say about a third.
    const bool third = l >= 2 && ((a.mask & ~doubted) >> (l - 2) & 3) == 3 &&
                       a.at[l] == a.at[l - 1] && a.at[l] == a.at[l - 2];
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

// nvcc loads two members of a structure at once, of which one may be padding.
void keep_defined_halves(Warp& w, const Ins& i, const Access& a, const u32* undefined) {
  for (int v = 0; v < i.vec; ++v)
    for (u32 rest = i.element(v) < 0 ? 0 : undefined[v]; rest; rest &= rest - 1) {
      const int l = __builtin_ctz(rest);
      i64 index;
      const u64 address = a.at[l] + u64(v) * i.width;
      const Region* r = w.block->machine->find(address, index);
      if (!r || r->all_defined) continue;
      u64 bits = 0;
      for (u64 k = 0; k < 8; ++k)
        if (!r->defined[(address + k - r->base) >> w.program->global_shift])
          bits |= u64{255} << 8 * k;
      if (bits) w.undefined_bits[size_t(i.element(v)) * LANES + l] = bits;
    }
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
  const bool asks = is_asking(i, space), plain = !(i.flags & SYNCHRONISES);
  const bool checked = plain || i.order() & VOLATILE;
  const u32 doubted = doubted_in(w, a, w.program->global_shift, plain);
  std::fill(undefined, undefined + i.vec, doubted);
  w.block->fenced |= bool(i.order() & ACQUIRES);
  if (i.order() & ACQUIRES) settle_writes(*w.home);
  Signal signal(w, space, i.order());
  // Nothing can be wrong with what nobody has written in this launch.
  const bool settled =
      common && plain && !asks && common->all_defined && common->stamps.empty() && !common->made_up;
  if (settled) {  // a lane that takes no part may hold any address, which no pointer could have
    const u64 shift = reinterpret_cast<u64>(common->data) - common->base;
    for (int l = 0; l < LANES; ++l) p.at[l] = reinterpret_cast<u8*>(shift + a.at[l]);
  }
  for (int l = 0; l < LANES && !settled; ++l) {
    if (!(a.mask >> l & 1)) continue;
    i64 index = hint_of(w, space).region;
    Region& r = common ? *common : *w.block->machine->find(a.at[l], index);
    p.at[l] = r.at(a.at[l]);
    if (__builtin_expect(!plain, 0)) {
      look_at_word(w, l, a.at[l]);
      if (u8* const before = value_before(w, l, r, index, a.at[l], a.bytes)) p.at[l] = before;
    }
    if (__builtin_expect(asks, 0)) {
      signal.load(a.at[l]);
      await(w, a.at[l], a.bytes, 1u << w.program->global_shift);
      if (i.order() & AWAITED && !r.stamps.empty())
        w.observe(a.at[l], r.stamps[(a.at[l] - r.base) >> w.program->global_shift], l);
    }
    if (r.all_defined && r.stamps.empty()) continue;
    if (i.order() & READ_ONLY) check_read_only(w, l, r, index, a.at[l], a.bytes);
    if (doubted >> l & 1) continue;
    for (int v = 0; v < i.vec; ++v)
      undefined[v] |= u32(global_read(w, l, r, index, a.at[l] + u64(v) * i.width, i.width, checked))
                      << l;
  }
  if (!asks && space == GLOBAL) {
    a.mask ^= doubted;
    remember_reads(w, common, a);
    a.mask ^= doubted;
  } else if (common) {
    common->read_unseen = true;
  } else {
    i64 index;
    for (u32 rest = a.mask; rest; rest &= rest - 1)
      w.block->machine->find(a.at[__builtin_ctz(rest)], index)->read_unseen = true;
  }
  trace(w, a, plain ? READ : READ_STRONGLY);
  finish_load(w, i, p, a.mask, undefined, origin);
  if (i.width == 8 && w.tainted) keep_defined_halves(w, i, a, undefined);
}

void load_private(Warp& w, const Ins& i, Access& a, u8 space) {
  Places p{};
  settle_private(w, a, space, p, false);
  u32 undefined[8] = {}, origin[8] = {};
  u64 bits[8][LANES];
  for (int l = 0; l < LANES && space == LOCAL; ++l)
    for (int v = 0; a.mask >> l & 1 && v < i.vec; ++v) {
      bits[v][l] = load_undefined(w, p.at[l] + size_t(v) * i.width, i.width, w.pc, origin[v]);
      undefined[v] |= u32(bits[v][l] != 0) << l;
    }
  finish_load(w, i, p, a.mask, undefined, origin);
  for (int v = 0; v < i.vec; ++v)
    for (u32 rest = i.element(v) < 0 ? 0 : undefined[v]; rest; rest &= rest - 1) {
      const int l = __builtin_ctz(rest);
      const bool extends = i.flags & SIGNED && bits[v][l] >> (8 * i.width - 1);
      const u64 above = extends && i.width < 8 ? ~u64{0} << 8 * i.width : 0;
      w.undefined_bits[size_t(i.element(v)) * LANES + l] = bits[v][l] | above;
    }
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
  const bool asks = is_asking(i, i.space == SHARED ? SHARED : GLOBAL);
  if (!asks || i.element(0) < 0) return Flow::next;
  return look_at(w, i, i.element(0), i.dwidth);
}

}  // namespace

bool is_load(const Ins& i) { return i.run == load; }

void add_loads(Table& t) { add(t, "ld", load, "VVVV>ai", is_access); }

}  // namespace sim
