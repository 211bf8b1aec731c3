#include "preemption.hpp"

#include "../machine/machine.hpp"
#include "../program/kinds.hpp"

namespace sim {
namespace {

constexpr u32 MOST_PREEMPTIONS = 32;  // of a warp

// In how many turns the warp gives way: in one before nearly all writes, and always before its
// first; in none or in many before a load, so that some warps come ahead by several accesses.
u32 turns_off(const Warp& w, bool loads) {
  const u64 of_order = u64(w.home->machine->order) << 48;
  const u64 drawn = mixed(of_order ^ u64(w.home->linear) << 16 ^ w.index << 8 ^ w.preempted);
  return loads ? drawn % 2 * (drawn / 2 % 8 + 1) : w.preempted == 1 || drawn % 8;
}

}  // namespace

bool gives_way(Warp& w, const Ins& i) {
  if (w.home->machine->order == FORWARDS || i.space == SHARED || w.repeats) return false;
  if (!w.gives_way && w.preempted == MOST_PREEMPTIONS) return false;
  if (!w.gives_way) ++w.preempted, w.gives_way = turns_off(w, is_load(i)) + 1;
  --w.gives_way;
  w.home->preempted |= w.gives_way != 0;
  return w.gives_way;
}

}  // namespace sim
