// Which rows of A and columns of B hold something undefined, and where it came from. An undefined
// row of A spoils its row of D alone: tiles may reach beyond the matrix.
#pragma once

#include "../machine/warp.hpp"

namespace sim {

struct UndefinedFragments {
  u32 rows = 0, columns = 0, origin = 0;

  // A register of A holds row lane / 4 + `from`, one of B column lane / 4.
  void add_a(const Warp& w, i32 slot, int from) { add(w, slot, rows, from); }
  void add_b(const Warp& w, i32 slot) { add(w, slot, columns, 0); }
  // The lanes whose element e of D they spoil.
  u32 of_sum(int e) const {
    u32 bad = 0;
    for (int l = 0; l < LANES; ++l)
      bad |= ((rows >> (l / 4 + 8 * (e >> 1)) | columns >> (l % 4 * 2 + (e & 1))) & 1) << l;
    return bad;
  }

 private:
  void add(const Warp& w, i32 slot, u32& to, int from) {
    const u32 lanes = w.undefined[slot];
    if (lanes) origin = w.origin[slot];
    for (int l = 0; l < LANES; ++l)
      if (lanes >> l & 1) to |= 1u << (l / 4 + from);
  }
};

}  // namespace sim
