#include "../machine/machine.hpp"
#include "../program/operations.hpp"

namespace sim {
namespace {

// All that the warp did is told by the flags that it sets from now on; what flags have told it is
// in order. But its lanes are in no order with each other.
template <bool wide> Flow fence(Warp& w, const Ins&) {
  Clocks& known = w.known;
  const u32 own = known.warps[w.index];
  for (const Moments* told : {&known.seen, &w.locked})
    wide ? known.Moments::join(*told) : known.join_own(*told);
  known.warps[w.index] = own;
  known.released = known;
  known.released.warps[w.index] = w.time++;
  if (!wide) return Flow::next;
  known.published = known.released;
  known.seen = w.locked = {};
  w.block->fenced = true;
  return Flow::next;
}

}  // namespace

void add_fences(Table& t) {
  add(t, "fence", fence<true>, ">");
  add(t, "fence.cta", fence<false>, ">");
}

}  // namespace sim
