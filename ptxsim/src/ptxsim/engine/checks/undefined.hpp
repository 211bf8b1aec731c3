// Undefined values: which lanes of which registers hold one, and where it came from.
#pragma once

#include <cstring>

#include "../shared.hpp"
#include "../machine/warp.hpp"
#include "../program/instruction.hpp"

namespace sim {

// What the executing lanes have in a register from now on; `origin`: the instruction that says why.
void mark_undefined(Warp& w, i32 slot, u32 lanes, u32 origin);
// Of the outputs of an instruction, by its inputs.
void propagate(Warp& w, const Ins& i);
// The same bit by bit, ahead of an instruction, which may overwrite its operands; false for most.
bool propagate_bits(Warp& w, const Ins& i);
void forget_taint(Warp& w);  // where no register holds an undefined value any more
// Stands ahead of what may read a register without a value.
Flow never_set(Warp& w, const Ins& i);

// A finding where the executing lanes use an undefined value, `bytes` of it.
void report_undefined(Warp& w, i32 slot, EventKind kind, bool predicate, u32 bytes = 8);
inline void check_defined(Warp& w, i32 slot, EventKind kind, bool predicate, u32 bytes = 8) {
  if (__builtin_expect(w.tainted, 0) && slot >= 0)
    report_undefined(w, slot, kind, predicate, bytes);
}
// A finding where one of these registers is the result of a wgmma that is under way.
void check_in_flight(Warp& w, const i32* slots, u32 count);

// Which bits of the lowest `bytes` of a register are undefined in one lane.
inline u64 undefined_bits(const Warp& w, i32 slot, int lane, u32 bytes = 8) {
  if (!(w.undefined[slot] >> lane & 1)) return 0;
  return w.undefined_bits[size_t(slot) * LANES + lane] & (~u64{0} >> (64 - 8 * bytes));
}
constexpr u32 DEFINED = ~0u;  // undefined_origin of a defined value
inline u32 undefined_origin(const Warp& w, i32 slot, int lane, u32 bytes) {
  return w.tainted && undefined_bits(w, slot, lane, bytes) ? w.origin[slot] : DEFINED;
}

// Lane-private memory holds what is undefined like a register: copying it is no use of it.
void store_undefined(Warp& w, i32 slot, int lane, const u8* at, u32 bytes);
inline void set_defined(Warp& w, const u8* at, u32 bytes) {
  std::memset(w.unset.data() + (at - w.local.data()), 0, bytes);
}
// Of a value of `bytes` there: the undefined bits, and whose they are; `reader` if nobody's.
u64 load_undefined(const Warp& w, const u8* at, u32 bytes, u32 reader, u32& origin);

}  // namespace sim
