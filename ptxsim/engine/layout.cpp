// What Python shares with the engine, as text: engine.py compares all of it with its own.
//
// A line for each field, "Record.field offset bytes", for each record, "Record bytes", and for each
// constant, "Group.NAME value".
#include <cstddef>
#include <string>

#include "machine/event.hpp"
#include "program/packed_program.hpp"

using namespace sim;

namespace {

// The compiler warns when one of these lacks a name of its enumeration.
#define NAME(constant) \
  case constant: return #constant

const char* name(Space space) {
  switch (space) {
    NAME(GLOBAL);
    NAME(SHARED);
    NAME(LOCAL);
    NAME(PARAM);
    NAME(CONST);
    NAME(GENERIC);
    case SPACES: break;
  }
  return nullptr;
}

const char* name(EventKind kind) {
  switch (kind) {
    NAME(OUT_OF_BOUNDS);
    NAME(MISALIGNED);
    NAME(RACE);
    NAME(ASYNC_RACE);
    NAME(UNDEFINED_STORE);
    NAME(UNDEFINED_ADDRESS);
    NAME(UNDEFINED_BRANCH);
    NAME(DIVERGENT_BARRIER);
    NAME(DIVERGENT_WARP_OP);
    NAME(DEADLOCK);
    NAME(ENDLESS);
    NAME(TRAP);
    NAME(ASSERTION);
    NAME(BARRIER_UNINITIALISED);
    NAME(BARRIERS_MIXED);
    NAME(COPY_NOT_COMMITTED);
    NAME(MASK_WITHOUT_CALLER);
    NAME(MASK_BEYOND_BLOCK);
    NAME(WAITS_FOR_EVER);
    NAME(NOT_ALL_RESIDENT);
    NAME(NEVER_SET);
    NAME(ABSENT_LANE);
    NAME(STACK_OVERFLOW);
    NAME(PART_OF_A_WARP);
    NAME(MBARRIER_NEVER_COMPLETES);
    NAME(BULK_COPY_RACE);
    NAME(OPERAND_OVERWRITTEN);
    NAME(PROXY_FENCE_MISSING);
    NAME(PROXY_FENCE_AFTER_COPY);
    NAME(WGMMA_NOT_FENCED);
    NAME(WGMMA_REGISTERS_SET);
    NAME(WGMMA_NOT_WAITED_FOR);
    NAME(WARPS_NOT_ORDERED);
    NAME(BAD_TENSOR_MAP);
    NAME(PEER_EXITED);
    NAME(PEER_NOT_STARTED);
    NAME(UNUSED_RACE);
    NAME(BEFORE_GRID_WAIT);
    NAME(TILE_MISALIGNED);
    NAME(TILE_BEFORE_TENSOR);
  }
  return nullptr;
}

const char* name(Status status) {
  switch (status) {
    NAME(RAN);
    NAME(OUT_OF_TIME);
    NAME(DEADLOCKED);
    NAME(TRAPPED);
    NAME(NO_MEMORY);
    NAME(TOO_LARGE);
    NAME(REFUSED);
  }
  return nullptr;
}

const char* name(SpecialRegister which) {
  switch (which) {
    NAME(TID_X);
    NAME(TID_Y);
    NAME(TID_Z);
    NAME(NTID_X);
    NAME(NTID_Y);
    NAME(NTID_Z);
    NAME(CTAID_X);
    NAME(CTAID_Y);
    NAME(CTAID_Z);
    NAME(NCTAID_X);
    NAME(NCTAID_Y);
    NAME(NCTAID_Z);
    NAME(LANEID);
    NAME(WARPID);
    NAME(NWARPID);
    NAME(SMID);
    NAME(NSMID);
    NAME(LANEMASK_EQ);
    NAME(LANEMASK_LT);
    NAME(LANEMASK_LE);
    NAME(LANEMASK_GT);
    NAME(LANEMASK_GE);
    NAME(DYNAMIC_SMEM_SIZE);
    NAME(TOTAL_SMEM_SIZE);
    NAME(GRIDID);
    NAME(ENVREG1);
    NAME(ENVREG2);
    NAME(CLUSTER_CTAID_X);
    NAME(CLUSTER_CTAID_Y);
    NAME(CLUSTER_CTAID_Z);
    NAME(CLUSTER_NCTAID_X);
    NAME(CLUSTER_NCTAID_Y);
    NAME(CLUSTER_NCTAID_Z);
    NAME(CLUSTERID_X);
    NAME(CLUSTERID_Y);
    NAME(CLUSTERID_Z);
    NAME(NCLUSTERID_X);
    NAME(NCLUSTERID_Y);
    NAME(NCLUSTERID_Z);
    NAME(CLUSTER_CTARANK);
    NAME(CLUSTER_NCTARANK);
    case SPECIALS: break;
  }
  return nullptr;
}

#undef NAME

void line(std::string& to, const std::string& what, u64 value) {
  to += what + ' ' + std::to_string(value) + '\n';
}

template <class Enum>
void enumeration(std::string& to, const std::string& group) {
  for (u32 value = 0; const char* const found = name(Enum(value)); ++value)
    line(to, group + '.' + found, value);
}

// What a field is called cannot stand in parentheses, and a pointer's own size is meant.
// NOLINTBEGIN(bugprone-macro-parentheses, bugprone-sizeof-expression)
std::string described() {
  std::string text;
#define FIELD(record, field)                                                       \
  text += #record "." #field " " + std::to_string(offsetof(record, field)) + ' ' + \
          std::to_string(sizeof(record::field)) + '\n'
#define RECORD(record) line(text, #record, sizeof(record))
#define CONSTANT(group, constant) line(text, #group "." #constant, constant)
  RECORD(PackedIns);
  FIELD(PackedIns, operation);
  FIELD(PackedIns, o);
  FIELD(PackedIns, pool);
  FIELD(PackedIns, imm);
  FIELD(PackedIns, guard);
  FIELD(PackedIns, negate);
  FIELD(PackedIns, width);
  FIELD(PackedIns, vec);
  FIELD(PackedIns, space);
  FIELD(PackedIns, flags);
  FIELD(PackedIns, dwidth);

  using Preset = Program::Preset;
  RECORD(Preset);
  FIELD(Preset, slot);
  FIELD(Preset, width);
  FIELD(Preset, value);

  RECORD(SharedArray);
  FIELD(SharedArray, start);
  FIELD(SharedArray, size);

  RECORD(FlowCount);
  FIELD(FlowCount, warps);
  FIELD(FlowCount, lanes);
  FIELD(FlowCount, splits);

  RECORD(MemoryCount);
  FIELD(MemoryCount, requests);
  FIELD(MemoryCount, cost);
  FIELD(MemoryCount, bytes);
  FIELD(MemoryCount, cost8);
  FIELD(MemoryCount, cost16);
  FIELD(MemoryCount, passes8);
  FIELD(MemoryCount, passes16);
  FIELD(MemoryCount, lines);
  FIELD(MemoryCount, zeros);

  RECORD(Pattern);
  FIELD(Pattern, mask);
  FIELD(Pattern, extra);
  FIELD(Pattern, at);

  RECORD(Event);
  FIELD(Event, kind);
  FIELD(Event, pc);
  FIELD(Event, other_pc);
  FIELD(Event, space);
  FIELD(Event, address);
  FIELD(Event, count);
  FIELD(Event, region);
  FIELD(Event, region_start);
  FIELD(Event, region_size);
  FIELD(Event, size);
  FIELD(Event, write);
  FIELD(Event, other_write);
  FIELD(Event, same_value);
  FIELD(Event, block);
  FIELD(Event, thread);
  FIELD(Event, other_block);
  FIELD(Event, other_thread);
  FIELD(Event, arrived);
  FIELD(Event, expected);
  FIELD(Event, mask);
  FIELD(Event, lanes);

  RECORD(PackedProgram);
  FIELD(PackedProgram, code);
  FIELD(PackedProgram, length);
  FIELD(PackedProgram, pool);
  FIELD(PackedProgram, pool_length);
  FIELD(PackedProgram, constants);
  FIELD(PackedProgram, constants_length);
  FIELD(PackedProgram, special);
  FIELD(PackedProgram, arrays);
  FIELD(PackedProgram, arrays_length);
  FIELD(PackedProgram, private_ranges);
  FIELD(PackedProgram, private_length);
  FIELD(PackedProgram, reach);
  FIELD(PackedProgram, ranks);
  FIELD(PackedProgram, slots);
  FIELD(PackedProgram, predicates);
  FIELD(PackedProgram, entry);
  FIELD(PackedProgram, local_bytes);
  FIELD(PackedProgram, shared_bytes);
  FIELD(PackedProgram, shared_cell);
  FIELD(PackedProgram, global_cell);
  FIELD(PackedProgram, reserved_bytes);

  CONSTANT(Flag, SIGNED);
  CONSTANT(Flag, SYNCHRONISES);
  CONSTANT(Flag, CROSS_LANE);
  CONSTANT(Flag, OWN_TAINT);
  CONSTANT(Flag, SELECTS);
  CONSTANT(Flag, DECIDES);
#undef FIELD
#undef RECORD
#undef CONSTANT
  enumeration<Space>(text, "Space");
  enumeration<EventKind>(text, "EventKind");
  enumeration<Status>(text, "Status");
  enumeration<SpecialRegister>(text, "SpecialRegister");
  return text;
}
// NOLINTEND(bugprone-macro-parentheses, bugprone-sizeof-expression)

}  // namespace

#pragma GCC visibility push(default)
extern "C" const char* sim_layout() {
  static const std::string text = described();
  return text.c_str();
}
#pragma GCC visibility pop
