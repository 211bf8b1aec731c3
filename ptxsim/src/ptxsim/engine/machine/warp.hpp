// A warp executes one instruction for all its active lanes at a time. Registers live in "slots"
// of 32 lanes × 4 bytes (two adjacent slots for a 64-bit register, the pair read as 32 × 8 bytes);
// predicates are one 32-bit lane mask each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <unordered_set>
#include <vector>

#include "async_access.hpp"
#include "clocks.hpp"
#include "region.hpp"

namespace sim {

// Lanes of a warp that share a program counter and a call stack.
struct Group {
  u32 pc = 0, mask = 0;
  u32 jump = 0;  // the branch that it followed last, if any
  u32 rank = 0;  // place of its basic block in an order where joins come after their branches
  // at_barrier: stands before a barrier until the rest of its warp comes; in_barrier: has arrived
  enum Wait : u8 { ready, in_barrier, at_barrier, warp_sync } wait = ready;
  u32 barrier_id = 0;
  std::vector<u32> stack;  // return addresses
};

// The last look at a flag or counter. A warp whose looks and registers repeat waits for others.
struct Look {
  u32 pc = ~0u;
  u64 seen = 0, changes = 0;  // addresses and values; of the machine
  u64 times = 0;              // that it was repeated
  u64 registers = 0;          // at some repetition
  bool waits = false;
  u64 mbarrier = 0;  // its address, where that is what the warp waits for; else 0

  bool same(const Look& o) const { return pc == o.pc && seen == o.seen && changes == o.changes; }
};

struct Block;
struct Program;

struct Warp {
  Block* block;  // whose shared memory an access touches: of the cluster, mostly its own
  Block* home;   // the warp's own
  Program* program;
  u8* regs;
  u32* preds;
  u32 index;           // within the block
  u32 started;         // lanes that there are: the last warp of a block may have fewer
  u32 live;            // lanes not exited
  u32 left_at[LANES];  // of the others: the instruction that ended them
  u32 exec;            // lanes that execute the current instruction
  u32 pc;
  Group now;  // the group that runs; now.mask is the active mask
  std::vector<Group> others;
  i64 fuel;       // basic blocks this warp may still enter in its turn
  u32 turns;      // in a row in which the running group spent its fuel
  bool fair;      // groups take turns: one of them may be spinning on another
  bool forced;    // a warp-level operation goes ahead without its missing lanes
  bool resting;   // gives way until the others have had a turn
  bool waited;    // its last turn ended so
  u32 gives_way;  // turns, before the access that comes next
  u32 preempted;  // accesses before which it may have
  bool repeats;   // goes once more round a loop that polls, which counts nothing
  u32 head;       // of its basic block
  u32 polls;      // head of a block that it comes to once more because what it awaits is not there
  Look look;
  bool passed;         // lanes went past a barrier at which others of the warp stand
  u32 time;            // its own clock
  Clocks clocks;       // what all lanes have acquired; own entry: in order for all of them
  Clocks lane_clocks;  // what some lanes alone have acquired besides
  u32 some_lanes;
  u32 joined_time;    // up to when, by its own clock, an mbarrier has put all lanes in order
  u32 released_time;  // when all lanes last released
  // By a __syncwarp of some lanes: what lanes did up to a time, and who is in order with that.
  struct LaneJoin { u32 time, from, to; };
  std::vector<LaneJoin> lane_joins;
  // The flags that lanes waited for last, and whose write ended the wait: what these lanes write
  // there comes after it.
  struct Observation {
    u64 place;
    Region::Stamp write;
    u32 lanes;
  };
  Observation observations[8];
  u32 observed;            // how many there were
  VectorClock lock_clock;  // released by the locks that it took: its next fence acquires it
  u32 past_wait;           // lanes in order with the kernels that a programmatic launch follows
  u32 cc;                  // carry flag per lane
  bool tainted;            // some register may hold an undefined value
  std::vector<u32> undefined, origin, pred_undefined, pred_origin;
  std::vector<u64> undefined_bits;  // of a slot in each lane where `undefined` says that there are
  std::vector<AsyncCopy> async;
  u32 async_group[LANES];
  u32 bulk_group[LANES];  // bulk copies to global memory that the lanes have committed
  struct Store {
    u32 lane, group;
    Extent to;
  };
  std::vector<Store> storing;       // what they may still write
  u32 wgmma_group;                  // groups of wgmma committed
  Clocks warpgroup;                 // released by its warps at their last wgmma.fence
  std::unordered_set<u64> settled;  // digests of the registers that wgmma.fence found
  struct Wgmma { u32 pc, group; };
  std::vector<Wgmma> wgmmas;  // under way
  // Releases by some lanes, as by arrivals at an mbarrier, without what the others did since all
  // were in order.
  struct LaneRelease { u32 time, since, lanes; };
  std::vector<LaneRelease> lane_releases;
  bool some_released;  // a warp of the block has such
  u64 cluster_phase;   // of the barrier of the cluster, when the warp last arrived
  std::vector<u8> regs_store;
  std::vector<u32> preds_store;
  std::vector<u8> local;         // lane-private memory, lane after lane
  std::vector<u8> unset;         // for each byte of it: which bits are undefined
  std::vector<u32> unset_by;     // for each four bytes: the origin of what is, or nobody's: DEFINED
  std::vector<u8> saved[LANES];  // frames of recursive calls, innermost last

  bool done() const { return !live; }
  void tick() {
    clocks.warps[index] = time++;
    if (__builtin_expect(some_lanes || !lane_joins.empty(), 0) && whole()) join_lanes();
  }
  void observe(u64 place, const Region::Stamp& write, int lane);
  bool has_observed(u64 place, const Region::Stamp& write, int lane) const;
  void join_lanes();               // all of them
  void join_lanes(u32 part);       // and these alone
  void release();                  // what the executing lanes did
  Clocks release_clocks() const {  // what the warp releases: all that it did
    Clocks released = clocks;
    released.warps[index] = time;
    released.flag_clock.join(lock_clock);
    if (uses_lane_clocks()) released.join(lane_clocks);
    return released;
  }
  Clocks fence_clocks() const {  // and up to its last fence alone
    Clocks released = clocks;
    static_cast<VectorClock&>(released) = clocks.block_fence;
    return released;
  }
  void acquire(const Clocks& released, u32 by) {  // lanes
    const bool all = !(live & ~by);
    Clocks& mine = all ? clocks : lane_clocks;
    const u32 own = mine.warps[index];
    mine.join(released);
    mine.warps[index] = own;
    if (!all) some_lanes |= by;
  }
  // The same where lanes of this warp may have released what they did.
  void acquire_own(const Clocks& released) {
    acquire(released, exec);
    u32& own = whole() ? joined_time : lane_clocks.warps[index];
    own = std::max(own, released.warps[index]);
  }
  bool uses_lane_clocks() const { return some_lanes & exec; }
  // Up to when the async proxy sees what the warp of this number wrote, by the executing lanes.
  u32 proxy_time(u32 warp) const {
    return std::max(clocks.proxy[warp], uses_lane_clocks() ? lane_clocks.proxy[warp] : 0);
  }
  Epoch epoch(int lane) const { return {index * LANES + lane, time}; }
  bool whole() const { return exec == live; }
  bool visits() const { return block != home; }  // the shared memory of another block
  void* slot(i32 s) const { return regs + size_t(s) * 128; }
  // Whether the block's access at `then` is ordered before the lane's now.
  bool ordered(Epoch then, int lane) const {
    const u32 thread = then.thread();
    if (thread == index * LANES + u32(lane)) return then.time() <= time;
    const u32 until = clocks.warps[thread / LANES];
    return (then.time() <= until && !some_released) || covers(until, then) ||
           ordered_for(then, lane);
  }
  // Whether whoever has acquired the access's warp up to this time comes after the access.
  bool covers(u32 until, Epoch then) const;
  bool ordered_for(Epoch then, int lane) const;  // by what not all lanes have acquired
  // Whether this warp's release at that time leaves out its own access.
  bool omits(u32 until, Epoch then) const;
  // The same for an access that synchronises: it needs no fence behind the look at a flag.
  bool ordered_by_flag(Epoch then) const {
    return then.warp() != index && then.time() <= clocks.flag_clock.warps[then.warp()];
  }
  // The same of a read by wgmma, which ends in wgmma.wait_group.
  bool ended(Epoch read) const {
    const u32 group = read.warp() / WARPS_OF_A_GROUP;
    return read.time() <=
           std::max(clocks.products[group], uses_lane_clocks() ? lane_clocks.products[group] : 0);
  }
};

template <class T> T* lanes(Warp& w, i32 slot) { return static_cast<T*>(w.slot(slot)); }

}  // namespace sim
