// What Python shares with the engine. `python -m ptxsim.engine_header` writes it.
// clang-format off
#pragma once

#include "types.hpp"

namespace sim {

enum Space : u8 {
  GLOBAL,
  SHARED,
  LOCAL,
  PARAM,
  CONST,
  GENERIC,
  SPACES,
};

enum Status : int {
  RAN,
  OUT_OF_TIME,
  DEADLOCKED,
  TRAPPED,
  NO_MEMORY,
  TOO_LARGE,
  REFUSED,
};

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
  STORE_UNDER_WAY,
  BAD_TENSOR_MAP,
  PEER_EXITED,
  PEER_NOT_STARTED,
  UNUSED_RACE,
  BEFORE_GRID_WAIT,
  TILE_MISALIGNED,
  TILE_BEFORE_TENSOR,
  ATOMIC_AND_PLAIN,
  NO_FUNCTION,
  USED_AFTER_FREE,
  FREED_TWICE,
  FREED_WRONGLY,
  BLOCK_SCOPE_ONLY,
  VOLATILE_RACE,
  NO_FENCE_AFTER_FLAG,
  READ_ONLY_WRITTEN,
  LOOKS_AT_ATOMIC,
  BAD_TEXTURE,
  BRANCH_OUT_OF_TABLE,
  EXTERN_ARRAYS_MEET,
  MBARRIER_NOT_FENCED,
  PROXY_FENCE_AFTER_READ,
  LEFT_BEFORE_BARRIER,
  EARLY_LOOK,
  UNFENCED_READ,
  UNCHECKED_SWAP,
  COMPLETED_BY_NO_COMPLETE,
  BAD_SURFACE,
  OUT_OF_SURFACE,
};

enum SpecialRegister {
  TID_X,
  TID_Y,
  TID_Z,
  NTID_X,
  NTID_Y,
  NTID_Z,
  CTAID_X,
  CTAID_Y,
  CTAID_Z,
  NCTAID_X,
  NCTAID_Y,
  NCTAID_Z,
  LANEID,
  WARPID,
  NWARPID,
  SMID,
  NSMID,
  LANEMASK_EQ,
  LANEMASK_LT,
  LANEMASK_LE,
  LANEMASK_GT,
  LANEMASK_GE,
  DYNAMIC_SMEM_SIZE,
  TOTAL_SMEM_SIZE,
  GRIDID,
  ENVREG1,
  ENVREG2,
  CLUSTER_CTAID_X,
  CLUSTER_CTAID_Y,
  CLUSTER_CTAID_Z,
  CLUSTER_NCTAID_X,
  CLUSTER_NCTAID_Y,
  CLUSTER_NCTAID_Z,
  CLUSTERID_X,
  CLUSTERID_Y,
  CLUSTERID_Z,
  NCLUSTERID_X,
  NCLUSTERID_Y,
  NCLUSTERID_Z,
  CLUSTER_CTARANK,
  CLUSTER_NCTARANK,
  SPECIALS,
};

constexpr u32 MAX_GRID_X = 2147483647, MAX_GRID_YZ = 65535, MAX_BLOCK_XY = 1024, MAX_BLOCK_Z = 64, MAX_THREADS = 1024, MAX_REGISTERS = 65536, REGISTER_UNIT = 256, DEFAULT_SHARED = 49152, MAX_LOCAL_BYTES = 524288, MAX_CLUSTER = 16, PORTABLE_CLUSTER = 8;  // CUDA's

constexpr u32 POISON = 2147188733;  // what never-written memory reads as

constexpr u64 TEXTURE_MAGIC = 2406455424690185588;  // of a Texture

constexpr u32 FUNCTION_STEP = 16;  // bytes between their addresses

constexpr u8 SIGNED = 1, SYNCHRONISES = 2, CROSS_LANE = 4, OWN_TAINT = 8, SELECTS = 16, DECIDES = 32;  // Ins::flags

constexpr i32 VOLATILE = 1, ACQUIRES = 2, RELEASES = 4, BLOCK_SCOPE = 8, AWAITED = 16, PASSED_ON = 32, READ_ONLY = 64, RESULT = 128, EXPECTS_LOADED = 256, UPDATED = 512;  // Ins::order()

struct PackedIns {
  i32 operation;
  i32 o[8];
  i32 pool;  // index into the pool, -1: none
  i64 imm;
  i16 guard;
  u8 negate, width, vec, space, flags, dwidth;
};
static_assert(sizeof(PackedIns) == 56);

struct Preset {
  u32 slot, width;
  u64 value;
};
static_assert(sizeof(Preset) == 16);

struct SharedArray {
  u32 start, size;
};
static_assert(sizeof(SharedArray) == 8);

struct FlowCount {
  u64 warps, lanes;
  u64 splits;  // jumps that some lanes of a group followed and others did not
};
static_assert(sizeof(FlowCount) == 24);

struct MemoryCount {
  u64 requests;
  u64 cost;  // sectors or wavefronts
  u64 bytes;
  // When sampling: the cost if each lane moved 8 or 16 aligned bytes round its address, as when
  // ptxas merges neighbouring accesses; of shared memory the same had it no bank conflicts; lines
  // of 128 bytes in global memory.
  u64 cost8, cost16, passes8, passes16, lines;
  u64 zeros;  // wavefronts of the copies of which some lanes bring no bytes
};
static_assert(sizeof(MemoryCount) == 72);

struct Pattern {
  u64 low, high;
  u32 mask;
  u32 extra;   // wavefronts that conflicts add at 4, 8 and 16 bytes together
  u32 at[32];  // shared addresses; in global memory bytes from a line of 128 bytes
};
static_assert(sizeof(Pattern) == 152);

struct Texture {
  u64 magic, address;
  u32 extents[3];  // texels; 1 beyond its dimensions
  u32 layers;      // 0: it has none
  u32 pitch;       // bytes from one row to the next; planes and layers follow one another
  u8 dimensions, channels;
  u8 element, type;  // of a channel: its bytes; unsigned, signed or floating
  u8 modes[3];       // along each dimension, as AddressMode numbers them
  u8 linear, normalized, reads_normalized, surface;
};
static_assert(sizeof(Texture) == 48);

struct Event {
  u32 kind, pc, other_pc, space;
  u64 address, count;
  i64 region;  // allocation or shared array; -1: none
  u64 region_start, region_size;
  i64 details[4];  // of some kinds, in the order of their record in findings/details.py
  u32 size, write, other_write, same_value;
  Dim block, thread, other_block, other_thread;
  u32 calls[8];  // that lead to pc, innermost first; 0: none
};
static_assert(sizeof(Event) == 184);

struct Write {
  u32 element, pc, width;
  u32 unwritten;   // nobody had written it before
  u32 definition;  // the instruction that computed the value; ~0: not known
  u32 inputs;      // of that instruction, as far as known
  u64 before, after;
  u64 values[3];   // of the inputs
  u64 sources[3];  // where they were loaded from: a generic address, and from bit 60 on log2(bytes)
  Dim block, thread;
};
static_assert(sizeof(Write) == 112);

struct PackedProgram {
  const PackedIns* code;
  u64 length;
  const i32* pool;
  u64 pool_length;
  const Preset* constants;
  u64 constants_length;
  const i32* special;  // SPECIALS entries
  const SharedArray* arrays;
  u64 arrays_length;
  const SharedArray* private_ranges;
  u64 private_length;
  const u32* reach;  // one row of bits per rank
  u64 ranks;
  u32 slots, predicates, entry, local_bytes, shared_bytes, shared_cell, global_cell, reserved_bytes;
  const u64* own_arrays;  // one for each instruction
  const u8* extern_arrays;  // the same; where there are several
  u64 externs;
};
static_assert(sizeof(PackedProgram) == 160);

constexpr const char* LAYOUT = "ab4c188b0f820db7";

}  // namespace sim
