// Programmatic launches: a kernel that may begin while those before it still run.
//
// Launches are simulated one after the other, which is one of the orders that a GPU may take. What
// a launch does to memory that an earlier one, maybe still running, uses is in order only after
// griddepcontrol.wait: for the threads that executed it, and for those that come after them by a
// barrier.
#pragma once

#include "../machine/machine.hpp"

namespace sim {

// Before a launch, and after it if it was traced.
void begin_dependency(Machine& m);
void keep_in_flight(Machine& m);
void end_block_dependency(Block& b);

// A lane's access to a cell that kernels which may still run use as `theirs` says.
void check_dependency(Warp& w, int lane, const Region& r, i64 index, u64 address, u32 bytes,
                      u8 theirs, u8 mine);

}  // namespace sim
