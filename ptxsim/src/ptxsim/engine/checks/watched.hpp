// Every write to an element that somebody watches, and what the value was computed from.
#pragma once

#include "../machine/machine.hpp"

namespace sim {

// An instruction of a watched launch: made before it runs, since it may overwrite what it reads.
class Step {
 public:
  Step(Warp& w, const Ins& i);
  void keep(Warp& w);  // how the registers that it wrote came to their values

 private:
  std::vector<Definition>& known_;
  const u32 pc_, exec_;
  bool loads_ = false;
  Definition made_[LANES];
};

void begin_watch(Machine& m);  // before a launch
// The memory holds what was written, and its shadow does not know of it yet.
void note_write(Warp& w, int lane, const Region& r, u64 address, u32 bytes);

}  // namespace sim
