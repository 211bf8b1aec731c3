// A kernel, prepared by Python (lower.py). Nothing here parses PTX.
#pragma once

#include <vector>

#include "hint.hpp"
#include "instruction.hpp"

namespace sim {

struct Named;

struct Program {
  std::vector<Ins> code;
  std::vector<i32> pool;
  u32 slots = 0, predicates = 0;
  std::vector<Preset> constants;
  i32 special[64];  // slot of each special register (see SpecialRegister), -1: unused
  u32 entry = 0;
  u32 local_bytes = 0;
  std::vector<SharedArray> arrays;  // static ones, then the dynamic one (always last)
  std::vector<u64> own_arrays;      // per instruction, as bits: those it may access
  // Per instruction: 1 + the extern array that its address comes from; 0: another, or unknown.
  // Empty unless the kernel has several, which all begin at one address.
  std::vector<u8> extern_arrays;
  std::vector<u32> extern_ends;             // up to which address each has been used
  std::vector<SharedArray> private_ranges;  // lane-private variables, by address
  std::vector<u32> reach;                   // per rank a row of bits: the ranks that may run later
  u32 ranks = 0, reach_row = 0;
  u32 shared_bytes = 0;  // address space, without what the launch adds
  u32 reserved = 0;      // bytes of the first array that hold something when a block begins
  u32 shared_shift = 0, global_shift = 0;  // log2 of the bytes per shadow cell
  std::vector<FlowCount> blocks;           // per instruction index of a block head
  std::vector<FlowCount> guarded;   // per guarded instruction or jump: executions with a lane
  std::vector<MemoryCount> memory;  // per instruction
  std::vector<MemoryCount> source;  // per instruction: the global side of cp.async
  std::vector<Pattern> patterns;    // when sampling: per instruction, then again, of global memory
  std::vector<Hint> hints, source_hints;
  std::vector<const Named*> named;  // per instruction
  bool has_volatile = false;        // some access is volatile
  bool has_strong_loads = false;    // of global memory: volatile, relaxed, acquire
  bool has_bulk_copies = false;     // to shared memory
  bool shares = false;  // parts of a launch have shared memory: they run one after the other

  bool reaches(u32 from, u32 to) const { return reach[from * reach_row + to / 32] >> to % 32 & 1; }
};

}  // namespace sim
