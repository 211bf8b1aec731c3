// st.
#include <algorithm>

#include "../checks/early_looks.hpp"
#include "../checks/global_races.hpp"
#include "../checks/release_acquire.hpp"
#include "../checks/shared_races.hpp"
#include "../checks/undefined.hpp"
#include "../program/operations.hpp"
#include "cost.hpp"
#include "spaces.hpp"

namespace sim {
namespace {

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
  const bool plain = !(i.flags & SYNCHRONISES), checked = plain || i.order() & VOLATILE;
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
      w.block->fenced |= bool(i.order() & RELEASES);
      if (i.order() & RELEASES) settle_writes(*w.home);
      for (int v = 0; v < i.vec; ++v)
        check_defined(w, i.element(v), UNDEFINED_STORE, false, i.width);
    }
  }
  Signal signal(w, space, i.order());
  for (int l = 0; l < LANES; ++l) {
    if (!(a.mask >> l & 1)) continue;
    i64 index = w.program->hints[w.pc].region;
    Region* r = nullptr;
    if (!plain && (space == SHARED || space == GLOBAL)) signal.release(a.at[l]);
    if (space == SHARED) p.at[l] = w.block->shared.data() + a.at[l];
    else if (space == GLOBAL) {
      r = common ? common : w.block->machine->find(a.at[l], index);
      if (r->made_up) continue;
      p.at[l] = r->at(a.at[l]);
    }
    for (int v = 0; v < i.vec; ++v) {
      u64 value = lane_value(w, i, i.element(v), l);
      u8* at = p.at[l] + u64(v) * i.width;
      u64 before = 0;
      std::memcpy(&before, at, i.width);
      const bool same = put(at, value, i.width);
      if (space == LOCAL) store_undefined(w, i.element(v), l, at, i.width);
      if (space == SHARED || space == GLOBAL) {
        u64 address = a.at[l] + u64(v) * i.width;
        if (space == SHARED)
          shared_write(w, l, u32(address), i.width, same && checked, false,
                       undefined_origin(w, i.element(v), l, i.width));
        else {
          if (plain) forget_before(*w.block->machine, address);
          else if (!same) change_word(w, l, *r, index, address, i.width, before);
          global_write(w, l, *r, index, address, i.width, same, false, checked);
        }
        w.block->machine->changes += !same && space == GLOBAL;
        w.block->machine->stores += space == GLOBAL;
      }
    }
  }
}

Flow store(Warp& w, const Ins& i) {
  in_spaces(w, i, [&](Access& a, u8 space) { store_to(w, i, a, space); });
  return Flow::next;
}

}  // namespace

void add_stores(Table& t) {
  add(t, "st", store, ">vVVVai", [](const Program& p, const Ins& i) {
    return is_access(p, i) && i.space != CONST &&
           std::all_of(i.o, i.o + i.vec, [](i32 o) { return o >= 0; });
  });
}

}  // namespace sim
