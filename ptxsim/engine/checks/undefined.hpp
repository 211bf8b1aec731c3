// Undefined values: which lanes of which registers hold one, and where it came from.
#pragma once

#include "../machine/event.hpp"
#include "../machine/warp.hpp"
#include "../program/instruction.hpp"

namespace sim {

void mark_undefined(Warp& w, i32 slot, u32 lanes, u32 origin);
void check_defined(Warp& w, i32 slot, EventKind kind, bool predicate);
// A finding where one of these registers is the result of a wgmma that is under way.
void check_in_flight(Warp& w, const i32* slots, u32 count);
void forget_taint(Warp& w);             // where no register holds an undefined value any more
Flow never_set(Warp& w, const Ins& i);  // stands ahead of what may read a register without a value

constexpr u32 DEFINED = ~0u;  // undefined_origin of a defined value
inline u32 undefined_origin(const Warp& w, i32 slot, int lane) {
  return w.tainted && w.undefined[slot] >> lane & 1 ? w.origin[slot] : DEFINED;
}

}  // namespace sim
