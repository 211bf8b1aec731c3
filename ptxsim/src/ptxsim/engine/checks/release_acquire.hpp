// Order by flags: vector clocks that travel through flags and counters in memory.
//
// Whoever changes a flag releases to it the clock of its last fence, or all that it has acquired if
// the access is a release; whoever reads the flag later acquires that by its next fence, or at once
// if the access is an acquire. Barriers pass on all of this to the other warps of the block.
#pragma once

#include "../machine/machine.hpp"

namespace sim {

// An atomic operation or an access that synchronises, by several lanes of a warp.
class Signal {
 public:
  Signal(Warp& w, u8 space, i32 order)
      : warp(w), shared(space == SHARED), within((shared && !w.visits()) || order & BLOCK_SCOPE),
        order(order) {}
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  ~Signal() {
    if (clock || block_clock) warp.tick();  // nobody acquires what the warp does from now on
  }
  void load(u64 address);
  void update(u64 address, bool same);  // by an atomic operation; same: nothing changes
  void lock(u64 address);     // by a compare-and-swap that many threads try until it succeeds
  void release(u64 address);  // a new value is left there
  void open_grid();           // all blocks have come to grid.sync()

 private:
  enum class By { acquire, flag, lock };
  void acquire(u64 address, By by);
  void acquire(const GridClockPtr& from, By by, bool of_block);  // of_block: and of no others
  GridClockPtr release_clock(bool of_block) const;

  Warp& warp;
  const bool shared;
  const bool within;  // it reaches the threads of the block only
  const i32 order;
  bool tried = false;
  GridClockPtr clock, block_clock;  // released to all, and what is more to the block
};

// Whether the access of another block is ordered before the lane's now.
bool ordered_elsewhere(const Warp& w, int lane, const Region::Stamp& access);
// Whether the access, of whatever block, would be if the warp executed a fence now: by a flag that
// it read, or a lock that it took.
bool flag_orders(const Warp& w, const Region::Stamp& access);
bool lock_orders(const Warp& w, const Region::Stamp& access);
// The same of what a wgmma of another block read; `read` is an epoch BY_WGMMA.
bool wgmma_ended_elsewhere(const Warp& w, const Block& block, Epoch read);
// The clock behind a fence.proxy.async in the block: the async proxy sees all of it, too.
GridClockPtr with_proxy_fence(const GridClockPtr& clock, const Block& b);
// Whether the async proxy, as this warp uses it, sees a plain write that is ordered before.
bool proxy_sees(const Warp& w, const Region::Stamp& write);
// Whether another block's start is ordered before this warp's now.
bool after_start(const Warp& w, u32 block);
// Whether all that the block's warps had acquired when they left covers the access.
bool ordered_before_exit(const Block& b, const Region::Stamp& access);

GridClockPtr join(const GridClockPtr& a, const GridClockPtr& b);
GridClockPtr release_clock(const Warp& w);                            // what the warp releases
GridClockPtr release_clock(const Warp& w, const VectorClock& fence);  // by a relaxed access
GridClockPtr grid_clock(const Block& b, const Clocks& clocks);        // of a warp of the block
GridClockPtr own_time(const Warp& w);  // that the warp has come this far, and no more
// What a warp of `b` acquires from a released clock.
Clocks acquired(const GridClockPtr& from, const Block& b);

}  // namespace sim
