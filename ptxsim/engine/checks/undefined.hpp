// Undefined values: which lanes of which registers hold one, and where it came from.
#pragma once

#include "../machine/event.hpp"
#include "../machine/warp.hpp"
#include "../program/instruction.hpp"

namespace sim {

// What the executing lanes have in a register from now on; `origin`: the instruction that says why.
void mark_undefined(Warp& w, i32 slot, u32 lanes, u32 origin);
// Of the outputs of an instruction, by its inputs.
void propagate(Warp& w, const Ins& i);
void forget_taint(Warp& w);  // where no register holds an undefined value any more
// Stands ahead of what may read a register without a value.
Flow never_set(Warp& w, const Ins& i);

// A finding where the executing lanes use an undefined value.
void report_undefined(Warp& w, i32 slot, EventKind kind, bool predicate);
inline void check_defined(Warp& w, i32 slot, EventKind kind, bool predicate) {
  if (__builtin_expect(w.tainted, 0) && slot >= 0) report_undefined(w, slot, kind, predicate);
}
// A finding where one of these registers is the result of a wgmma that is under way.
void check_in_flight(Warp& w, const i32* slots, u32 count);

constexpr u32 DEFINED = ~0u;  // undefined_origin of a defined value
inline u32 undefined_origin(const Warp& w, i32 slot, int lane) {
  return w.tainted && w.undefined[slot] >> lane & 1 ? w.origin[slot] : DEFINED;
}

}  // namespace sim
