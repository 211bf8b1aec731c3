// Groups of lanes within a warp: how they part, wait for each other and merge.
#pragma once

#include "../machine/warp.hpp"
#include "../machine/event.hpp"
#include "../program/instruction.hpp"

namespace sim {

Flow park(Warp& w, Group::Wait why, u32 pc);
Flow block_head(Warp& w, const Ins& i);
// Whether the lanes an operation of the whole warp names have come to it. Those that have wait for
// the others; `incomplete` when nobody can bring the missing ones any more.
enum class Assembly { complete, waiting, incomplete };
Assembly assemble(Warp& w, u32 members, Group::Wait wait);
void report_missing(Warp& w, EventKind kind, u32 members);
// Whether what all 32 lanes must execute together may go ahead; else `flow` is what to return.
bool come_together(Warp& w, Flow& flow);

}  // namespace sim
