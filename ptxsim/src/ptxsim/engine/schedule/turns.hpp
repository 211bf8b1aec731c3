// Who runs when: the warps of a block, and the blocks of a launch, take turns.
#pragma once

#include "../machine/machine.hpp"

namespace sim {

constexpr i64 WARP_FUEL = 1 << 14;  // basic blocks in one turn of a warp

// Turns in a row in which a group of lanes spends all its fuel: it may be spinning on others of its
// warp.
constexpr u32 MANY_TURNS = 16;

// A warp runs until it waits, is done or its fuel is spent.
void run_warp(Warp& w);

void prepare(Block& b, Machine& m);  // what stays the same for every block of a launch
void begin(Block& b, u32 linear);

// waiting: for what other blocks do; polling: the same, but registers change; preempted: between
// two accesses that may synchronise
enum class Outcome { finished, paused, waiting, polling, preempted };
Outcome run(Block& b);

double cpu_seconds();  // of this thread
bool spent(const Machine& m);
void report_out_of_time(const Warp& w);
// Turns in a row in which all warps of a block only look at mbarriers, though they count or see
// another time meanwhile. What they wait for would have come long ago.
constexpr u64 MANY_POLLS = 1 << 12;
// One of its warps, if every warp of a block waits: that one at an mbarrier, the others there, too,
// or at a barrier. for_long: their registers may change.
const Warp* stuck_at_mbarrier(const Block& b, bool for_long);
// Whether all arrivals came to that mbarrier, and bytes are missing or too many. A phase that waits
// for those who wait there is not the cause.
bool counts_bytes_wrong(const Warp& w);
void report_mbarrier(const Warp& w);  // that it waits for, and that never completes

}  // namespace sim
