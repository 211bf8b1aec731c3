// Races whose values nobody uses. A look at a call finds reads of shared memory that race. A second
// look at it takes what they read for undefined, and for read by nobody: where nothing comes of it,
// the race does no harm.
#pragma once

#include "../machine/machine.hpp"

namespace sim {

// Keeps the read that takes part in the race `e`. `who`: of the reader; `block`: its number + 1.
void suspect(Machine& m, const Event& e, u32 block, u32 who, u32 pc);
// Whether the read that the warp is about to make raced in a look before; warns of it.
bool is_suspect(Warp& w);
// In a second look: a finding where the instruction uses an undefined operand in a way that is not
// followed any further.
void check_use(Warp& w, const Ins& i);

}  // namespace sim
