// The space that each lane's address lies in.
#pragma once

#include "cluster_addresses.hpp"

namespace sim {

// Where each lane's bytes live in the simulator's own memory.
struct Places { u8* at[LANES]; };

// Of local memory and kernel parameters, which are plain bytes. Drops lanes out of bounds.
void settle_private(Warp& w, Access& a, u8 space, Places& p, bool write);

// The window that a generic address lies in, or a little below: s[-1] is in none of its own.
constexpr u64 window_of(u64 address) { return (address + SHARED_WINDOW / 2) >> 56; }

// Splits a generic access by the space each lane's address lies in.
template <class F> void by_space(const Access& all, F f) {
  u32 left = all.mask;
  while (left) {
    const u64 window = window_of(all.at[__builtin_ctz(left)]);
    Access part = all;
    part.mask = 0;
    for (int l = 0; l < LANES; ++l)
      if (left >> l & 1 && window_of(all.at[l]) == window) part.mask |= 1u << l;
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

// Whether ld and st can make this access.
bool is_access(const Program& p, const Ins& i);

}  // namespace sim
