#include "../checks/early_looks.hpp"
#include "../program/operations.hpp"

namespace sim {
namespace {

// All that the warp did is told by the flags that it sets from now on; what flags have told it is
// in order for the executing lanes. But these are in no order with each other.
template <bool wide> Flow fence(Warp& w, const Ins&) {
  Clocks& known = w.known;
  Clocks told;
  for (const Moments* each : {&known.seen, &w.locked})
    wide ? told.Moments::join(*each) : told.join_own(*each);
  if (!told.none()) w.learn(told, w.exec);
  known.released = known;
  if (w.knows_more()) known.released.join(w.some);
  known.released.warps[w.index] = w.clock();
  w.tell();
  if (!wide) return Flow::next;
  known.published = known.released;
  w.block->fenced = true;
  settle_writes(*w.home);
  if (w.whole()) known.seen = w.locked = {};
  return Flow::next;
}

}  // namespace

void add_fences(Table& t) {
  add(t, "fence", fence<true>, ">");
  add(t, "fence.cta", fence<false>, ">");
}

}  // namespace sim
