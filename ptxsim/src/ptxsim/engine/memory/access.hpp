// The lanes of an access to memory: their addresses, alignment and bounds.
#pragma once

#include "../machine/machine.hpp"

namespace sim {

// The lanes of one access: addresses (inactive lanes repeat the first active one) and the mask of
// lanes that may still go ahead.
struct Access {
  u64 at[LANES];
  u32 mask;
  u32 bytes;  // per lane, all vector elements together
  int first() const { return __builtin_ctz(mask); }
};

void resolve_addresses(Warp& w, const Ins& i, Access& a);
void drop_misaligned(Warp& w, Access& a, u8 space, bool write);
// Drop lanes outside every allocation (global, constant) or array (shared); returns the one region
// all remaining lanes lie in, or null when they lie in several.
Region* settle_global(Warp& w, Access& a, u8 space, bool write);
void settle_shared(Warp& w, Access& a, bool write);
// What the current instruction did last; blank when that was in another space.
inline Hint& hint_of(Warp& w, u8 space) {
  Hint& hint = w.program->hints[w.pc];
  if (__builtin_expect(hint.space != space, 0)) {
    hint = Hint{};
    hint.space = space;
  }
  return hint;
}

}  // namespace sim
