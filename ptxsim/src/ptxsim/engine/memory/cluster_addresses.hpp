// Addresses in the shared memory of the blocks of a cluster.
#pragma once

#include "access.hpp"

namespace sim {

// What an address in shared memory says of whose it is: 0 for the block's own, else rank + 1.
constexpr int RANK_SHIFT = 24;
constexpr u64 WITHIN_BLOCK = (u64{1} << RANK_SHIFT) - 1;

// While it lives, the warp's accesses to shared memory go to another block of its cluster.
class Visit {
 public:
  Visit(Warp& w, Block* to) : warp(w), back(w.block) { w.block = to; }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  ~Visit() { warp.block = back; }

 private:
  Warp& warp;
  Block* const back;
};

// The block that an address says, or null, with an event, where there is none or it has ended.
Block* block_of(Warp& w, int lane, u64 address);

// Splits an access to shared memory by whose it is, and calls `f` in the block of each part.
template <class F> void by_block(Warp& w, const Access& all, F f) {
  for (u32 left = all.mask; left;) {
    const int first = __builtin_ctz(left);
    const u64 owner = all.at[first] >> RANK_SHIFT;
    Access part = all;
    part.mask = 0;
    for (int l = 0; l < LANES; ++l) {
      if (left >> l & 1 && all.at[l] >> RANK_SHIFT == owner) part.mask |= 1u << l;
      part.at[l] = (part.mask >> l & 1 ? all.at[l] : all.at[first]) & WITHIN_BLOCK;
    }
    left &= ~part.mask;
    Block* const block = block_of(w, first, all.at[first]);
    if (!block) continue;
    const Visit visit(w, block);
    f(part);
  }
}

}  // namespace sim
