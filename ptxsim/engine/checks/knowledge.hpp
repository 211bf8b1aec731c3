// Order between blocks: vector clocks that travel through flags and counters in memory.
//
// Whoever changes a flag, after a fence, leaves there what its warp knows; whoever reads the flag
// later learns it. A barrier passes it on to the other warps of the block.
#pragma once

#include "../machine/machine.hpp"

namespace sim {

// An atomic operation or an access that synchronises, by several lanes of a warp.
class Signal {
 public:
  Signal(Warp& w, Flags& flags, bool fenced) : warp(w), flags(flags), fenced(fenced) {}
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  ~Signal() {
    if (raised) warp.tick();  // what the warp does from now on, nobody learned of
  }
  void read(u64 address);   // the value left there is seen
  void raise(u64 address);  // a new value is left there
  void open();              // all blocks have come to grid.sync()

 private:
  Warp& warp;
  Flags& flags;
  bool fenced;
  Known raised;
};

// Whether the access of another block, stamped `who`, is ordered before this warp's now.
bool ordered_elsewhere(const Warp& w, u32 block, u32 who);
// The same of what a wgmma of another block read; `who` is a stamp BY_WGMMA.
bool wgmma_ended_elsewhere(const Warp& w, const Block& block, u32 who);
// What `known` becomes by a fence.proxy.async in the block: of all of it the async proxy knows,
// too.
Known shown_to_proxy(const Known& known, const Block& b);
// Whether the async proxy, as this warp uses it, sees a plain write of another block, which is
// ordered before.
bool proxy_sees(const Warp& w, const Region::Stamp& write);
// Whether this warp knows that another block has started.
bool heard_of(const Warp& w, u32 block);
// Whether all that the block's warps knew when they left covers the access.
bool ordered_before_exit(const Block& b, const Region::Stamp& access);

Known join(const Known& a, const Known& b);
Known told(const Warp& w);                         // what others learn of this warp
Known told(const Block& b, const Clocks& clocks);  // of one that knows this
Known moment(const Warp& w);                       // that it has come this far, and no more
// What is said as a warp of `listener` learns it.
Clocks heard(const Known& said, const Block& listener);

}  // namespace sim
