// Races whose values nobody uses. A look at a call finds reads that race. A second look at it takes
// what they read for undefined, and for read by nobody: where nothing comes of it, the race does no
// harm.
#pragma once

#include "../memory/access.hpp"

namespace sim {

// Keeps the read that takes part in the race `e`. `then`: when; `block`: the reader's number + 1.
void suspect(Machine& m, const Event& e, u32 block, Epoch then, u32 pc);
// In a second look: the lanes whose read, which the warp is about to make, raced in a look before;
// warns of it. Where the clamped indices of many lanes meet, the lane that writes there may use
// what it reads. cell: bytes that share a shadow.
u32 doubted_lanes(Warp& w, const Access& a, u32 cell);
// In a second look: a finding where the instruction uses an undefined operand in a way that is not
// followed any further.
void check_use(Warp& w, const Ins& i);

}  // namespace sim
