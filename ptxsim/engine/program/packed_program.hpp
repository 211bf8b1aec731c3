// Programs as Python packs them (layout.cpp tells engine.py of the layouts), and how they become
// the engine's.
#pragma once

#include "program.hpp"

namespace sim {

struct PackedIns {
  i32 operation;
  i32 o[8];
  i32 pool;  // index into the pool, -1: none
  i64 imm;
  i16 guard;
  u8 negate, width, vec, space, flags, dwidth;
};

struct PackedProgram {
  const PackedIns* code;
  u64 length;
  const i32* pool;
  u64 pool_length;
  const Program::Preset* constants;
  u64 constants_length;
  const i32* special;  // SPECIALS entries
  const SharedArray* arrays;
  u64 arrays_length;
  const SharedArray* private_ranges;
  u64 private_length;
  const u32* reach;  // one row of bits per rank
  u64 ranks;
  u32 slots, predicates, entry, local_bytes, shared_bytes, shared_cell, global_cell, reserved_bytes;
};

// What a call came to.
enum Status : int { RAN, OUT_OF_TIME, DEADLOCKED, TRAPPED, NO_MEMORY, TOO_LARGE, REFUSED };

constexpr u64 SOUND = ~u64{0};

// Fills `program`. Returns SOUND, or the index of the instruction that the engine must not run: an
// operand outside the registers or of another kind than its handler takes, a jump to nowhere. The
// length stands for what belongs to no instruction.
u64 load(const PackedProgram& packed, Program& program);

}  // namespace sim
