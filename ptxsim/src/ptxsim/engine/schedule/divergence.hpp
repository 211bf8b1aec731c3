// Lanes of a warp that part at a branch form groups, each with a program counter of its own.
//
// At the head of every basic block groups that stand there together merge, and the group whose
// block comes first (deepest call first) runs next, so that both sides of a branch reach their join
// before anyone passes it.
#pragma once

#include "../shared.hpp"
#include "../machine/warp.hpp"
#include "../program/instruction.hpp"

namespace sim {

// Choose the next group when none is running; false when all wait.
bool pick(Warp& w);
// The running group may be spinning on another of the same warp: from now on they take turns, until
// they are one again. False when no other is ready.
bool take_turns(Warp& w);
// The running group waits at `pc`.
Flow park(Warp& w, Group::Wait why, u32 pc);
// Head of a basic block; vec is zero when it does nothing but exit.
Flow block_head(Warp& w, const Ins& i);

// Whether the lanes an operation of the whole warp names have come to it. Those that have wait for
// the others; `incomplete` when nobody can bring the missing ones any more.
enum class Assembly { complete, waiting, incomplete };
Assembly assemble(Warp& w, u32 members, Group::Wait wait);
void report_missing(Warp& w, EventKind kind, u32 members);

// Whether what all 32 lanes must execute together may go ahead; else `flow` is what to return.
bool come_together(Warp& w, Flow& flow);

}  // namespace sim
