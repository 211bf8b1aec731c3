// The last blocks of a launch in parts that run at the same time.
#pragma once

#include "../machine/machine.hpp"

namespace sim {

inline std::atomic<u32> jobs = 1;  // parts at most

// Whether parts may take the place of blocks that run one after the other.
bool may_part(const Machine& m);

// Runs the blocks first ≤ b < last; false if nothing has come of it, and they have to run one after
// the other: parts touched the same memory, or there is something to be said of them.
bool run_in_parts(Machine& m, u64 first, u64 last);

}  // namespace sim
