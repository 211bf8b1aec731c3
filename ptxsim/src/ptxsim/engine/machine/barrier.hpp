// Barriers and mbarrier objects.
#pragma once

#include <vector>

#include "../program/program.hpp"
#include "clocks.hpp"
#include "region.hpp"

namespace sim {

struct Barrier {
  u32 arrived = 0, expected = 0;
  u32 votes = 0, voters = 0;  // bar.red
  Clocks arrivals;
};

constexpr u32 BARRIERS = 16;  // of a block

// Bytes of shared memory that an asynchronous copy writes, or those of global memory that it reads.
struct Landing {
  SharedArray to{};
  Extent from{};
  Region::Stamp copy{};
};

// An mbarrier object in shared memory.
struct MBarrier {
  u32 count, pending;  // arrivals: of a phase, and still missing
  i64 transactions;    // bytes expected and not yet copied
  u64 announced;       // bytes expected in this phase
  u64 phase;
  u32 creator, creator_pc;               // stamp of its initialisation
  u32 shown;                             // of its thread's fence.mbarrier_init since; 0: none
  bool destroyed;                        // something else has been written there since
  Clocks arriving, released;             // of this phase's arrivals, of all completed phases
  std::vector<Landing> landing, landed;  // what copies bring in this phase, and brought
};

}  // namespace sim
