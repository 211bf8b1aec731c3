// Branches and exits: what they share with calls and barriers.
#pragma once

#include "../shared.hpp"
#include "../machine/warp.hpp"
#include "../program/program.hpp"

namespace sim {

// Lanes that do not follow a guarded jump go on behind it; the fall-through is a block head.
void leave_behind(Warp& w);
// Ends the launch. address: of what the event is about.
Flow stop(Warp& w, EventKind why, u64 address = 0);
Flow stop(Warp& w, const Event& why);

// Jumps go to the heads of basic blocks, and where they may fall through there is one too.
bool is_block(const Program& p, i64 at);
bool falls_into_block(const Program& p, const Ins& i);

}  // namespace sim
