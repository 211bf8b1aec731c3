#include "../checks/early_looks.hpp"
#include "../program/operations.hpp"

namespace sim {
namespace {

// The flags that the warp sets from now on release all that it did; what flags and locks have
// released to it the executing lanes acquire. But these are in no order with each other.
template <bool wide> Flow fence(Warp& w, const Ins&) {
  Clocks& own = w.clocks;
  Clocks acquired;
  for (const VectorClock* each : {&own.flag_clock, &w.lock_clock})
    wide ? acquired.VectorClock::join(*each) : acquired.join_own(*each);
  if (!acquired.none()) w.acquire(acquired, w.exec);
  own.block_fence = own;
  if (w.uses_lane_clocks()) own.block_fence.join(w.lane_clocks);
  own.block_fence.warps[w.index] = w.time;
  w.release();
  if (!wide) return Flow::next;
  own.device_fence = own.block_fence;
  w.block->fenced = true;
  settle_writes(*w.home);
  if (w.whole()) own.flag_clock = w.lock_clock = {};
  return Flow::next;
}

}  // namespace

void add_fences(Table& t) {
  add(t, "fence", fence<true>, ">");
  add(t, "fence.cta", fence<false>, ">");
}

}  // namespace sim
