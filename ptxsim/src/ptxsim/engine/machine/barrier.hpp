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
  Epoch creator;  // of its initialisation
  u32 creator_pc;
  Epoch shown;                           // of its thread's fence.mbarrier_init since, if any
  bool destroyed;                        // something else has been written there since
  Clocks arriving, released;             // by this phase's arrivals, by all completed phases
  std::vector<Landing> landing, landed;  // what copies bring in this phase, and brought
};

}  // namespace sim
