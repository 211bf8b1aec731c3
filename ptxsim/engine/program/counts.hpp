// What a program's run counts, for each instruction. Python reads these records (engine.py).
#pragma once

#include "../types.hpp"

namespace sim {

// cost: sectors or wavefronts; cost8, cost16: what it would be if each lane moved 8 or 16 aligned
// bytes round its address, as when ptxas merges neighbouring accesses; passes8, passes16: the same
// of shared memory had it no bank conflicts; lines: of 128 bytes, in global memory; these only when
// sampling. zeros: wavefronts of the copies of which some lanes bring no bytes.
struct MemoryCount { u64 requests, cost, bytes, cost8, cost16, passes8, passes16, lines, zeros; };
// splits: jumps that some lanes of a group followed and others did not.
struct FlowCount { u64 warps, lanes, splits; };
// Where the lanes of a shared access went, in the execution with the most bank conflicts.
struct Pattern {
  u32 mask = 0, extra = 0;  // extra: wavefronts that conflicts add at 4, 8 and 16 bytes together
  u32 at[LANES] = {};       // shared addresses
};

}  // namespace sim
