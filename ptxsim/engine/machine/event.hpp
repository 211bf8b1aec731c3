#pragma once

#include "../types.hpp"

namespace sim {

enum EventKind : u32 {
  OUT_OF_BOUNDS,
  MISALIGNED,
  RACE,
  ASYNC_RACE,
  UNDEFINED_STORE,
  UNDEFINED_ADDRESS,
  UNDEFINED_BRANCH,
  DIVERGENT_BARRIER,
  DIVERGENT_WARP_OP,
  DEADLOCK,
  ENDLESS,
  TRAP,
  ASSERTION,
  BARRIER_UNINITIALISED,
  BARRIERS_MIXED,
  COPY_NOT_COMMITTED,
  MASK_WITHOUT_CALLER,
  MASK_BEYOND_BLOCK,
  WAITS_FOR_EVER,
  NOT_ALL_RESIDENT,
  NEVER_SET,
  ABSENT_LANE,
  STACK_OVERFLOW,
  PART_OF_A_WARP,
  MBARRIER_NEVER_COMPLETES,
  BULK_COPY_RACE,
  OPERAND_OVERWRITTEN,
  PROXY_FENCE_MISSING,
  PROXY_FENCE_AFTER_COPY,
  WGMMA_NOT_FENCED,
  WGMMA_REGISTERS_SET,
  WGMMA_NOT_WAITED_FOR,
  WARPS_NOT_ORDERED,
  BAD_TENSOR_MAP,
  PEER_EXITED,
  PEER_NOT_STARTED,
  UNUSED_RACE,
  BEFORE_GRID_WAIT,
  TILE_MISALIGNED,
  TILE_BEFORE_TENSOR,
};

// One finding before it becomes a sentence. The layout is read by Python (engine.py).
struct Event {
  u32 kind, pc, other_pc, space;
  u64 address, count;
  i64 region;  // allocation or shared array; -1: none
  u64 region_start, region_size;
  u32 size, write, other_write, same_value;
  Dim block, thread, other_block, other_thread;
  u32 arrived, expected;
  u32 mask, lanes;  // of a warp operation: the lanes that it names, and those that execute it
};

struct Warp;
Event event_at(const Warp& w, EventKind kind, int lane);  // of what the warp does now

}  // namespace sim
