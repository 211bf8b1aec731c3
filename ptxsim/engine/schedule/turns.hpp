// Who runs when: the warps of a block, and the blocks of a launch, take turns.
#pragma once

#include "../machine/machine.hpp"

namespace sim {

constexpr i64 WARP_FUEL = 1 << 14;  // basic blocks in one turn of a warp

// A warp runs until it waits, is done or its fuel is spent.
void run_warp(Warp& w);

void prepare(Block& b, Machine& m);  // what stays the same for every block of a launch
void begin(Block& b, u32 linear);

// waiting: for what other blocks do
enum class Outcome { finished, paused, waiting };
Outcome run(Block& b);

double cpu_seconds();  // of this thread
bool spent(const Machine& m);
void report_out_of_time(const Warp& w);
void report_mbarrier(const Warp& w);  // that it waits for, and that never completes

}  // namespace sim
