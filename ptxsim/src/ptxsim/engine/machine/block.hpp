// Blocks and clusters.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "barrier.hpp"
#include "cell.hpp"
#include "warp.hpp"

namespace sim {

struct Block;
struct Machine;

// Blocks that run together and reach each other's shared memory.
struct Cluster {
  std::vector<Block*> blocks;
  u32 finished = 0;  // blocks
  u32 arrived = 0;   // threads at its barrier
  u64 phase = 0;
  GridClockPtr arriving, passed;  // released in this phase, and in all before it
  // Visits that have ended when the phase does, though a relaxed arrival does not release them.
  std::vector<std::pair<Block*, Region::Stamp>> parting;
};

struct Block {
  Machine* machine;
  Program* program;
  Dim id;
  u32 linear;
  u32 threads, live;
  std::vector<Warp> warps;
  std::vector<u8> shared;
  std::vector<Cell> cells;
  std::vector<PeerCell> peers;          // as many; empty until another block comes
  std::vector<Region::Stamp> hidden;    // as many: the plain write that atomics followed
  std::vector<ExternCell> externs;      // as many, where several extern arrays share the memory
  std::vector<Region::Stamp> visitors;  // the latest access of each warp of other blocks
  Barrier barriers[BARRIERS + WARPGROUPS];
  Clocks exit_clocks;  // released by the warps that have left
  // Threads that had left when the others first passed a barrier of all, and where the first did.
  struct Leavers { u32 barrier, at, first, count; } left;
  std::map<u32, MBarrier> mbarriers;  // by shared address
  Flags flags;  // in shared memory, and what an atomic of block scope released in global memory
  std::vector<AsyncReads> reading;                  // under way
  std::shared_ptr<Cluster> cluster;                 // null where blocks run by themselves
  u32 rank;                                         // in the cluster
  Clocks at_cluster_barrier, past_cluster_barrier;  // of the warps that have arrived
  bool fenced;                                      // has executed a fence for all blocks
  bool stopped;
  bool preempted;                // a warp has given way in this turn
  bool stored;                   // to global memory
  std::vector<u64> unfenced;     // keys of Machine::stale
  u64 polls;                     // turns in a row in which its warps only waited
  bool waited, triggered;        // by griddepcontrol
  std::vector<Epoch> past_wait;  // of threads in order with the kernels before
};

}  // namespace sim
