#pragma once

#include "../shared.hpp"

namespace sim {

// What the last execution of a memory instruction looked like: most repeat it.
struct Hint {
  u64 low = 1, high = 0;  // the region last touched
  i64 region = -1;        // of global memory
  u8 space = SPACES;      // the region's: a generic access may touch another one next time
  u32 mask = 0, phase = 0, phase_mask = 0;
  u32 cost = 0, cost8 = 0, cost16 = 0, passes8 = 0, passes16 = 0, lines = 0;  // as in MemoryCount
  bool aligned = false;      // no lane was misaligned or out of bounds
  u64 below = 0, above = 0;  // bytes that the lanes reach below and above the first one's address
  u64 delta[LANES];          // from the first active lane

  // Whether accesses of `bytes` at addresses between `first` and `last` stay in the region.
  bool holds(u64 first, u64 last, u64 bytes) const {
    return first >= low && last <= high && bytes <= high - last;
  }
};

}  // namespace sim
