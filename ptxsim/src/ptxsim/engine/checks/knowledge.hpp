// Order by flags: vector clocks that travel through flags and counters in memory.
//
// Whoever changes a flag leaves there what its last fence covers, or all that it knows if it
// releases; whoever asks the flag later learns that by its next fence, or at once if it acquires.
// Barriers pass on all of this to the other warps of the block.
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
    if (raised || raised_within) warp.tick();  // what the warp does from now on, nobody learned of
  }
  void ask(u64 address);                        // by a load
  void ask_and_change(u64 address, bool same);  // by an atomic operation; same: nothing changes
  void take_lock(u64 address);  // by a compare-and-swap that many threads try until it succeeds
  void raise(u64 address);      // a new value is left there
  void open();                  // all blocks have come to grid.sync()

 private:
  enum class By { acquire, flag, lock };
  void learn(u64 address, By by);
  void learn(const Known& told, By by, bool of_block);  // of_block: and not of others
  Known content(bool of_block) const;

  Warp& warp;
  const bool shared;
  const bool within;  // it reaches the threads of the block only
  const i32 order;
  bool tried = false;
  Known raised, raised_within;  // for all, and what is more for the block
};

// Whether the access of another block is ordered before the lane's now.
bool ordered_elsewhere(const Warp& w, int lane, const Region::Stamp& access);
// Whether the access, of whatever block, would be if the warp executed a fence now: a flag that it
// asked has told of it, or a lock that it took.
bool told_by_flag(const Warp& w, const Region::Stamp& access);
bool told_by_lock(const Warp& w, const Region::Stamp& access);
// The same of what a wgmma of another block read; `who` is a stamp BY_WGMMA.
bool wgmma_ended_elsewhere(const Warp& w, const Block& block, u32 who);
// What `known` becomes by a fence.proxy.async in the block: of all of it the async proxy knows,
// too.
Known shown_to_proxy(const Known& known, const Block& b);
// Whether the async proxy, as this warp uses it, sees a plain write that is ordered before.
bool proxy_sees(const Warp& w, const Region::Stamp& write);
// Whether this warp knows that another block has started.
bool heard_of(const Warp& w, u32 block);
// Whether all that the block's warps knew when they left covers the access.
bool ordered_before_exit(const Block& b, const Region::Stamp& access);

Known join(const Known& a, const Known& b);
Known told(const Warp& w);                          // what others learn of this warp
Known told(const Warp& w, const Moments& covered);  // and of this alone
Known told(const Block& b, const Clocks& clocks);   // of one that knows this
Known moment(const Warp& w);                        // that it has come this far, and no more
// What is said as a warp of `listener` learns it.
Clocks heard(const Known& said, const Block& listener);

}  // namespace sim
