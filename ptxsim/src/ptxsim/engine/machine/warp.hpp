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
  bool passed;   // lanes went past a barrier at which others of the warp stand
  u32 time;      // its own clock
  Clocks known;  // what it has seen of every warp's clock; own entry: in order for all its lanes
  Clocks some;   // what some lanes alone know besides
  u32 some_lanes;
  u32 heard_time;  // up to when, by its own clock, an mbarrier has put all lanes in order
  u32 told_time;   // when all lanes last told others
  // By a __syncwarp of some lanes: what lanes did up to a time, and who is in order with that.
  struct Meeting { u32 time, of, to; };
  std::vector<Meeting> meetings;
  // The flags that lanes waited for last, and whose write ended the wait: what these lanes write
  // there comes after it.
  struct Observation {
    u64 place;
    Region::Stamp write;
    u32 lanes;
  };
  Observation observations[8];
  u32 observed;  // how many there were
  Moments
      locked;  // what locks have told that it took: in order behind its next fence, for nobody now
  u32 past_wait;  // lanes in order with the kernels that a programmatic launch follows
  u32 cc;         // carry flag per lane
  bool tainted;   // some register may hold an undefined value
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
  Clocks warpgroup;                 // what its warps knew at their last wgmma.fence
  std::unordered_set<u64> settled;  // digests of the registers that wgmma.fence found
  struct Wgmma { u32 pc, group; };
  std::vector<Wgmma> wgmmas;  // under way
  // Arrivals at an mbarrier by some lanes: nobody learns what the others did since all were in
  // order.
  struct Alone { u32 time, since, lanes; };
  std::vector<Alone> alone;
  bool some_alone;    // a warp of the block has such
  u64 cluster_phase;  // of the barrier of the cluster, when the warp last arrived
  std::vector<u8> regs_store;
  std::vector<u32> preds_store;
  std::vector<u8> local;         // lane-private memory, lane after lane
  std::vector<u8> unset;         // for each byte of it: which bits are undefined
  std::vector<u32> unset_by;     // for each four bytes: the origin of what is, or nobody's: DEFINED
  std::vector<u8> saved[LANES];  // frames of recursive calls, innermost last

  bool done() const { return !live; }
  u32 clock() const { return time; }
  void tick() {
    known.warps[index] = time++;
    if (__builtin_expect(some_lanes || !meetings.empty(), 0) && whole()) meet();
  }
  void observe(u64 place, const Region::Stamp& write, int lane);
  bool has_observed(u64 place, const Region::Stamp& write, int lane) const;
  void meet();                     // all lanes come together
  void meet(u32 part);             // and these alone
  void tell();                     // what the executing lanes did is told to others
  Clocks now_for_others() const {  // what others learn of this warp: all that it did
    Clocks clocks = known;
    clocks.warps[index] = time;
    clocks.seen.join(locked);
    if (knows_more()) clocks.join(some);
    return clocks;
  }
  Clocks fenced_for_others() const {  // and up to its last fence alone
    Clocks clocks = known;
    static_cast<Moments&>(clocks) = known.released;
    return clocks;
  }
  void learn(const Clocks& of, u32 by) {  // lanes
    const bool all = !(live & ~by);
    Clocks& knows = all ? known : some;
    const u32 own = knows.warps[index];
    knows.join(of);
    knows.warps[index] = own;
    if (!all) some_lanes |= by;
  }
  void hear(const Clocks& of) {  // the same where lanes of this warp may have told of themselves
    learn(of, exec);
    u32& own = whole() ? heard_time : some.warps[index];
    own = std::max(own, of.warps[index]);
  }
  bool knows_more() const { return some_lanes & exec; }
  // Up to when the async proxy sees what the warp of this number wrote, as executing lanes know.
  u32 fenced(u32 warp) const {
    return std::max(known.fenced[warp], knows_more() ? some.fenced[warp] : 0);
  }
  u32 stamp(int lane) const { return (index * LANES + lane) | clock() << 10; }
  bool whole() const { return exec == live; }
  bool visits() const { return block != home; }  // the shared memory of another block
  void* slot(i32 s) const { return regs + size_t(s) * 128; }
  // True when the access stamped `who` (thread | clock << 10) is ordered before this warp's now.
  bool ordered(u32 who, int lane) const {
    u32 thread = who & 1023;
    if (thread == index * LANES + u32(lane)) return (who >> 10) <= time;
    const bool told = (who >> 10) <= known.warps[thread >> 5];
    return (told && !some_alone) || covers(known.warps[thread >> 5], who) || ordered_for(who, lane);
  }
  // Whether whoever has heard of the access's warp up to this time knows of the access.
  bool covers(u32 until, u32 who) const;
  bool ordered_for(u32 who, int lane) const;  // by what not all lanes know
  // Whether this warp, when it told others at that time, told nothing of its own access.
  bool left_out(u32 until, u32 who) const;
  // The same for an access that synchronises: it needs no fence behind the look at a flag.
  bool ordered_by_flag(u32 who) const {
    const u32 other = (who & 1023) / LANES;
    return other != index && (who >> 10) <= known.seen.warps[other];
  }
  // The same of a read by wgmma, which ends in wgmma.wait_group.
  bool ended(u32 who) const {
    const u32 group = (who & 1023) / LANES / WARPS_OF_A_GROUP;
    return (who >> 10) <= std::max(known.products[group], knows_more() ? some.products[group] : 0);
  }
};

template <class T> T* lanes(Warp& w, i32 slot) { return static_cast<T*>(w.slot(slot)); }

}  // namespace sim
