// How programs as Python packs them become the engine's.
#pragma once

#include "program.hpp"

namespace sim {

constexpr u64 SOUND = ~u64{0};

// Fills `program`. Returns SOUND, or the index of the instruction that the engine must not run: an
// operand outside the registers or of another kind than its handler takes, a jump to nowhere. The
// length stands for what belongs to no instruction.
u64 load(const PackedProgram& packed, Program& program);

}  // namespace sim
