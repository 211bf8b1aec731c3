// mbarrier objects, for those that complete on them.
#pragma once

#include "../memory/cluster_addresses.hpp"

namespace sim {

// Calls `f` with every lane's barrier, its warp being a visitor where that is another block's;
// lanes with a bad or never initialised one drop out.
template <class F> void each_barrier(Warp& w, const Access& all, F f);

// Releases to the barrier, for whoever waits, all that the warp did.
void release(const Warp& w, MBarrier& b);
// The same of a bulk copy that completes there: in the shared memory of another block it says
// nothing of what came before it.
void release_copy(const Warp& w, MBarrier& b);
// Ends the phase when nothing is missing any more.
void complete_if_due(Warp& w, MBarrier& b);
MBarrier* barrier_at(Warp& w, int lane, u32 address);

template <class F> void each_barrier(Warp& w, const Access& all, F f) {
  by_block(w, all, [&](Access& a) {
    drop_misaligned(w, a, SHARED, true);
    if (a.mask) settle_shared(w, a, true);
    for (u32 rest = a.mask; rest; rest &= rest - 1) {
      const int l = __builtin_ctz(rest);
      if (MBarrier* b = barrier_at(w, l, u32(a.at[l]))) f(l, *b);
    }
  });
}

}  // namespace sim
