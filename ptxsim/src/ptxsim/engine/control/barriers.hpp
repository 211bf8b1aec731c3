// Barriers of a block.
#pragma once

#include "../machine/warp.hpp"
#include "../program/instruction.hpp"

namespace sim {

// The next instruction runs when the threads that it names have come to barrier `id`.
Flow arrive_and_wait(Warp& w, u32 id, u32 threads);
// The lanes exit.
Flow leave(Warp& w, u32 lanes);

}  // namespace sim
