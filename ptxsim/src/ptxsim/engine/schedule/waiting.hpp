// Warps that wait for what others do.
#pragma once

#include "../machine/warp.hpp"
#include "../program/instruction.hpp"

namespace sim {

// Whether what a warp looks at, which is `look`, is as before, so that it waits.
bool looks_again(Warp& w, Look look);
// Looks at a value that the executing lanes have read into the register `value`, of `bytes`.
Flow look_at(Warp& w, const Ins& i, i32 value, u32 bytes);
Flow wait_in_turn(Warp& w);  // the instruction is done, and the others come first

}  // namespace sim
