// The SIMT interpreter's data: programs, warps, blocks, memory with its shadow, and events.
//
// A warp executes one instruction for all its active lanes at a time. Registers live in "slots"
// of 32 lanes × 4 bytes (two adjacent slots for a 64-bit register, the pair read as 32 × 8 bytes);
// predicates are one 32-bit lane mask each. Python (lower.py) prepares programs; nothing here
// parses PTX.
#pragma once

#include <compare>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace sim {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using i8 = int8_t;
using i16 = int16_t;
using i32 = int32_t;
using i64 = int64_t;

constexpr int LANES = 32;
constexpr u32 ALL = 0xffffffffu;
constexpr u32 POISON = 0x7ffb7ffd;  // a NaN in every format: what never-written memory reads as

// Generic addresses: the top byte names the space; global addresses have it zero.
constexpr u64 SHARED_WINDOW = u64{1} << 56;
constexpr u64 LOCAL_WINDOW = u64{2} << 56;
constexpr u64 OFFSET_MASK = (u64{1} << 56) - 1;

enum Space : u8 { GLOBAL, SHARED, LOCAL, PARAM, CONST, GENERIC, SPACES };

// Whether the bytes [offset, offset + bytes) lie within [0, size). Nothing here can wrap, whatever
// the numbers: offsets come from the program and may be anything.
constexpr bool within(u64 offset, u64 bytes, u64 size) {
  return bytes <= size && offset <= size - bytes;
}
constexpr bool within(u64 address, u64 bytes, u64 start, u64 size) {
  return address >= start && within(address - start, bytes, size);
}

// More than one, so that %smid differs between blocks, and fewer than any GPU of a lab has, so that
// what a program keeps for each multiprocessor is large enough.
constexpr u32 MULTIPROCESSORS = 16;

// What one block may take. More than any GPU has; it keeps a program from taking all memory here.
constexpr u32 MAX_THREADS = 1024;
constexpr u32 MAX_LOCAL_BYTES = 512 << 10;    // per thread
constexpr u32 MAX_SHARED_BYTES = 1 << 20;     // dynamic, and static, of a block
constexpr u32 MOST_OF_A_CLUSTER = 16;         // blocks
constexpr u64 MAX_BLOCK_BYTES = 768u << 20;   // a block's registers, shadow and lane-private memory
constexpr u64 MAX_RESIDENT_BYTES = 1u << 30;  // all blocks in flight together
constexpr size_t MAX_EVENTS = 4096;           // different findings of one launch

struct Warp;
struct Named;
class Ins;

// What the warp does after an instruction.
enum class Flow { next, jumped, yield };
using Handler = Flow (*)(Warp&, const Ins&);

class Ins {
  i64 number = 0;  // what it is for an operation, the names below say

 public:
  Handler run;
  i32 o[8];      // operands: slots, predicates or numbers in the order of Named::shape; -1: absent;
                 // read under the names below or by operands()
  const i32* x;  // further operands (mma), and the lists that taint tracking walks
  i16 guard;     // predicate number, -1: none
  u8 negate;     // the guard is @!p
  u8 width;      // bytes of one element of a memory access
  u8 vec;        // elements of a memory access
  u8 space;
  u8 flags;   // see the constants below
  u8 dwidth;  // bytes of the destination register

  // of an operation on each lane alone
  i32 output() const { return o[0]; }
  i32 input(size_t k) const { return o[k + 1]; }
  // of an access to memory: elements in registers, address = base + offset
  i32 element(int k) const { return o[k]; }
  i32 base() const { return o[4]; }  // -1: none
  i32 base_bytes() const { return o[5]; }
  i64 offset() const { return number; }
  // of jumps and calls: where they go; of brx: how many places there are in x
  i64 target() const { return number; }
  i64 targets() const { return number; }
  i64 rank() const { return number; }              // of a block head
  int truth_table() const { return int(number); }  // of lop3
  i64 reduction() const { return number; }         // of a barrier
  i64 groups() const { return number; }            // of cp.async.wait_group: not waited for
  i64 pooled() const { return number; }            // where the operands begin in x

  void set_number(i64 value) { number = value; }
};

// What `o` holds under the names that a handler gives it: a struct of i32 in the order of its
// shape.
template <class Names> Names operands(const Ins& i) {
  static_assert(std::is_trivially_copyable_v<Names> && sizeof(Names) <= sizeof i.o);
  Names names;
  std::memcpy(&names, i.o, sizeof names);
  return names;
}

// Ins::flags
constexpr u8 SIGNED = 1;        // sign-extend the loaded value
constexpr u8 SYNCHRONISES = 2;  // volatile, relaxed, acquire, release: not a plain access
constexpr u8 CROSS_LANE = 4;    // an undefined source lane makes every lane undefined
constexpr u8 OWN_TAINT = 8;     // the handler tracks undefined values itself
constexpr u8 SELECTS = 16;      // selp: taint follows the chosen operand
constexpr u8 DECIDES = 32;      // branch, exit, barrier: an undefined guard is a finding

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
};

struct Dim { u32 x, y, z; };

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

// A device allocation, or a __device__/__constant__ variable.
struct Region {
  u64 base, size;
  u8* data;
  bool all_defined;                      // no byte was ever left unwritten
  std::vector<u8> defined;               // per cell, when not all_defined
  struct Stamp { u32 block, who, pc; };  // block + 1; thread | clock << 10
  std::vector<Stamp> stamps;             // per cell, last write in this launch; empty until written
  // Reads of LINE cells in a row by one warp at one time; bit k of `cells` stands for the k-th.
  struct Reads { u32 block, who, pc, cells; };  // block + 1; 0: none
  struct Line { Reads last, elsewhere; };       // the latest reads, and those of another block
  std::vector<Line> lines;                      // in this launch; empty until read
  std::vector<u8> uses;       // per cell, Use of this launch; empty unless traced and used
  std::vector<u8> in_flight;  // the same of launches that may still run; shorter where none
};

// What a launch did to a cell of global memory, as bits. streams.py has the same.
enum Use : u8 { READ = 1, WRITTEN = 2, READ_STRONGLY = 4, WRITTEN_STRONGLY = 8 };
// While a launch runs, what blocks do after their griddepcontrol.launch_dependents is so far left.
constexpr int AFTER_TRIGGER = 4;

// Shadow of one cell of shared memory.
struct Cell {
  u32 writer, writer_pc;  // stamp; 0: never written. pc bit 31: an undefined value, its origin
  u32 reader, reader_pc;  // the two latest reads by different threads; pc bit 31: BY_WGMMA
  u32 reader2, reader2_pc;
  u32 pending, pending_pc;  // thread + 1 of a cp.async in flight
};
constexpr u32 UNDEFINED_BIT = 0x80000000u;
constexpr u32 BY_WGMMA = 0x80000000u;  // the stamp holds its group's number, + 1, for a clock
constexpr u32 BEFORE_ALL = 1;          // a writer whose time is 0: it comes before every access
constexpr u32 BY_PEER = ~0u;           // a writer that belongs to another block of the cluster

// What other blocks of the cluster did last to a cell of shared memory. writer: where Cell::writer
// is BY_PEER.
struct PeerCell { Region::Stamp writer, reader, reader2; };

struct SharedArray { u32 start, size; };

// What the last execution of a memory instruction looked like: most repeat it.
struct Hint {
  u64 low = 1, high = 0;  // the region last touched
  i64 region = -1;        // of global memory
  u8 space = SPACES;      // the region's: a generic access may touch another one next time
  u32 mask = 0, phase = 0, phase_mask = 0;
  u32 cost = 0, cost8 = 0, cost16 = 0, passes8 = 0, passes16 = 0, lines = 0;  // as in MemoryCount
  bool aligned = false;      // no lane was misaligned or out of bounds
  u64 below = 0, above = 0;  // bytes that the lanes reach below and above the first one's address
  u64 delta[LANES];          // from the first active lane

  // Whether accesses of `bytes` at addresses between `first` and `last` stay in the region.
  bool holds(u64 first, u64 last, u64 bytes) const {
    return first >= low && last <= high && bytes <= high - last;
  }
};

// cost: sectors or wavefronts; cost8, cost16: what it would be if each lane moved 8 or 16 aligned
// bytes round its address, as when ptxas merges neighbouring accesses; passes8, passes16: the same
// of shared memory had it no bank conflicts; lines: of 128 bytes, in global memory; these only when
// sampling. zeros: wavefronts of the copies of which some lanes bring no bytes.
struct MemoryCount { u64 requests, cost, bytes, cost8, cost16, passes8, passes16, lines, zeros; };
// splits: jumps that some lanes of a group followed and others did not.
struct FlowCount { u64 warps, lanes, splits; };
// Where the lanes of a shared access went, in the execution with the most bank conflicts.
struct Pattern {
  u32 mask = 0, extra = 0;  // extra: wavefronts that conflicts add at 4, 8 and 16 bytes together
  u32 at[LANES] = {};       // shared addresses
};
u32 shared_wavefronts(const u32* at, u32 mask, u32 bytes);  // of one access

struct Program {
  std::vector<Ins> code;
  std::vector<i32> pool;
  u32 slots = 0, predicates = 0;
  struct Preset {
    u32 slot, width;
    u64 value;
  };
  std::vector<Preset> constants;
  i32 special[64];  // slot of each special register (see SpecialRegister), -1: unused
  u32 entry = 0;
  u32 local_bytes = 0;
  std::vector<SharedArray> arrays;          // static ones, then the dynamic one (always last)
  std::vector<SharedArray> private_ranges;  // lane-private variables, by address
  std::vector<u32> reach;                   // per rank a row of bits: the ranks that may run later
  u32 ranks = 0, reach_row = 0;
  u32 shared_bytes = 0;  // address space, red zones included, without the dynamic array
  u32 reserved = 0;      // bytes of the first array that hold something when a block begins
  u32 shared_shift = 0, global_shift = 0;  // log2 of the bytes per shadow cell
  std::vector<FlowCount> blocks;           // per instruction index of a block head
  std::vector<FlowCount> guarded;   // per guarded instruction or jump: executions with a lane
  std::vector<MemoryCount> memory;  // per instruction
  std::vector<MemoryCount> source;  // per instruction: the global side of cp.async
  std::vector<Pattern> patterns;    // per instruction, when sampling; empty without shared accesses
  std::vector<Hint> hints, source_hints;
  std::vector<const Named*> named;  // per instruction
  bool relaxes = false;             // some arrival or wait is relaxed: fences count there

  bool reaches(u32 from, u32 to) const { return reach[from * reach_row + to / 32] >> to % 32 & 1; }
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
  SPECIALS
};

// Lanes of a warp that share a program counter and a call stack.
struct Group {
  u32 pc = 0, mask = 0;
  u32 rank = 0;  // place of its basic block in an order where joins come after their branches
  // at_barrier: stands before a barrier until the rest of its warp comes; in_barrier: has arrived
  enum Wait : u8 { ready, in_barrier, at_barrier, warp_sync } wait = ready;
  u32 barrier_id = 0;
  std::vector<u32> stack;  // return addresses
};

constexpr u32 WARPGROUPS = 8;  // of a block; each has a barrier of its own, for wgmma.fence
constexpr u32 WARPS_OF_A_GROUP = 4;

// What is known of the warps of other blocks (knowledge.cpp).
struct Knowledge;
using Known = std::shared_ptr<const Knowledge>;

// A vector clock: of every warp of the block the latest moment that is ordered before, and what is
// known of other blocks.
struct Clocks {
  u32 warps[32] = {};
  u32 fenced[32] = {};            // what a fence.proxy.async has shown of them to the async proxy
  u32 products[WARPGROUPS] = {};  // groups of wgmma that have ended
  Known others;

  void join(const Clocks& more);
};

// Clocks that travel with the values of flags and counters, by address.
using Flags = std::unordered_map<u64, Known>;

struct AsyncCopy {
  u32 pc, mask, bytes;
  u32 target[LANES], group[LANES];
  u8 data[LANES][16];
};

// What an asynchronous operation still reads of shared memory: wgmma, a bulk copy.
struct AsyncReads {
  u32 pc, thread, group;
  bool wgmma;               // its groups are the warp's, those of bulk copies a thread's
  u32 first, last;          // addresses in 16 bytes
  std::vector<u64> pieces;  // of 16 bytes, as bits from `first` on

  u32 stamp() const { return (thread & 1023) | (group + 1) << 10; }  // of a wgmma
  bool touches(u32 address, u32 bytes) const {
    for (u32 piece = address / 16; piece <= (address + bytes - 1) / 16; ++piece)
      if (piece >= first && piece <= last &&
          pieces[(piece - first) / 64] >> (piece - first) % 64 & 1)
        return true;
    return false;
  }
};

struct Block;

// The last look at a flag or counter. A warp whose looks and registers repeat waits for others.
struct Look {
  u32 pc = ~0u;
  u64 seen = 0, changes = 0;  // addresses and values; of the machine
  u64 times = 0;              // that it was repeated
  u64 registers = 0;          // at some repetition
  bool waits = false;
  u64 mbarrier = 0;  // its address, where that is what the warp waits for; else 0

  bool same(const Look& o) const { return pc == o.pc && seen == o.seen && changes == o.changes; }
};

struct Warp {
  Block* block;  // whose shared memory an access touches: of the cluster, mostly its own
  Block* home;   // the warp's own
  Program* program;
  u8* regs;
  u32* preds;
  u32 index;    // within the block
  u32 started;  // lanes that there are: the last warp of a block may have fewer
  u32 live;     // lanes not exited
  u32 exec;     // lanes that execute the current instruction
  u32 pc;
  Group now;  // the group that runs; now.mask is the active mask
  std::vector<Group> others;
  i64 fuel;      // basic blocks this warp may still enter in its turn
  bool fair;     // groups take turns: one of them may be spinning on another
  bool forced;   // a warp-level operation goes ahead without its missing lanes
  bool resting;  // gives way until the others have had a turn
  bool waited;   // its last turn ended so
  Look look;
  bool passed;   // lanes went past a barrier at which others of the warp stand
  Clocks known;  // what this warp has seen of every warp's clock; own entry: clock - 1
  // What others learned of it by its last fence, for its block and for all, and what it will learn
  // by its next one: in place of a release or an acquire that a relaxed arrival or wait lacks.
  Clocks released, released_to_all, acquired;
  u32 past_wait;  // lanes in order with the kernels that a programmatic launch follows
  u32 cc;         // carry flag per lane
  bool tainted;   // some register may hold an undefined value
  std::vector<u32> undefined, origin, pred_undefined, pred_origin;
  std::vector<AsyncCopy> async;
  u32 async_group[LANES];
  u32 bulk_group[LANES];            // bulk copies to global memory that the lanes have committed
  u32 wgmma_group;                  // groups of wgmma committed
  Clocks warpgroup;                 // what its warps knew at their last wgmma.fence
  std::unordered_set<u64> settled;  // digests of the registers that wgmma.fence found
  struct Wgmma { u32 pc, group; };
  std::vector<Wgmma> wgmmas;  // under way
  u64 cluster_phase;          // of the barrier of the cluster, when the warp last arrived
  std::vector<u8> regs_store;
  std::vector<u32> preds_store;
  std::vector<u8> local;         // lane-private memory, lane after lane
  std::vector<u8> saved[LANES];  // frames of recursive calls, innermost last

  bool done() const { return !live; }
  u32 clock() const { return known.warps[index] + 1; }
  void tick() { ++known.warps[index]; }
  Clocks now_for_others() const {  // what others learn of this warp: all that it did
    Clocks clocks = known;
    ++clocks.warps[index];
    return clocks;
  }
  void learn(const Clocks& of) {
    const u32 own = known.warps[index];
    known.join(of);
    known.warps[index] = own;
  }
  u32 stamp(int lane) const { return (index * LANES + lane) | clock() << 10; }
  bool whole() const { return exec == live; }
  bool visits() const { return block != home; }  // the shared memory of another block
  void* slot(i32 s) const { return regs + size_t(s) * 128; }
  // True when the access stamped `who` (thread | clock << 10) is ordered before this warp's now.
  bool ordered(u32 who, int lane) const {
    u32 thread = who & 1023;
    return thread == index * LANES + u32(lane) || (who >> 10) <= known.warps[thread >> 5];
  }
  // The same of a read by wgmma, which ends in wgmma.wait_group.
  bool ended(u32 who) const {
    return (who >> 10) <= known.products[(who & 1023) / LANES / WARPS_OF_A_GROUP];
  }
};

struct Barrier {
  u32 arrived = 0, expected = 0;
  u32 votes = 0, voters = 0;  // bar.red
  Clocks arrivals;
};

constexpr u32 BARRIERS = 16;  // of a block

// An mbarrier object in shared memory.
struct MBarrier {
  u32 count, pending;  // arrivals: of a phase, and still missing
  i64 transactions;    // bytes expected and not yet copied
  u64 phase;
  u32 creator, creator_pc;                   // stamp of its initialisation
  Clocks arriving, released;                 // of this phase's arrivals, of all completed phases
  std::vector<SharedArray> landing, landed;  // what bulk copies write in this phase, and wrote
};

struct Machine;

// Blocks that run together and reach each other's shared memory.
struct Cluster {
  std::vector<Block*> blocks;
  u32 finished = 0;  // blocks
  u32 arrived = 0;   // threads at its barrier
  u64 phase = 0;
  Known arriving, passed;  // what they tell each other in this phase, and told in all others
  // Visits that have ended when the phase does, though a relaxed arrival does not tell of them.
  std::vector<std::pair<Block*, Region::Stamp>> parting;
};

struct Block {
  Machine* machine;
  Program* program;
  Dim id;
  u32 linear;
  u32 threads, live;
  std::vector<Warp> warps;
  std::vector<u8> shared;
  std::vector<Cell> cells;
  std::vector<PeerCell> peers;          // as many; empty until another block comes
  std::vector<Region::Stamp> visitors;  // the latest access of each warp of other blocks
  Barrier barriers[BARRIERS + WARPGROUPS];
  Clocks exited;                                    // of the warps that have left
  std::map<u32, MBarrier> mbarriers;                // by shared address
  Flags flags;                                      // in shared memory
  std::vector<AsyncReads> reading;                  // under way
  std::shared_ptr<Cluster> cluster;                 // null where blocks run by themselves
  u32 rank;                                         // in the cluster
  Clocks at_cluster_barrier, past_cluster_barrier;  // of the warps that have arrived
  bool fenced;  // has executed a fence or a synchronising access: may order other blocks' writes
  bool fenced_within;  // or one that orders it for the threads of the block only
  bool stopped;
  bool waited, triggered;      // by griddepcontrol
  std::vector<u32> past_wait;  // stamps of threads in order with the kernels before
};

struct Machine {
  std::vector<std::unique_ptr<Region>> regions;
  Flags flags;      // in global memory, of this launch
  u64 changes = 0;  // of global memory, and by atomic operations
  std::map<std::tuple<u32, u32, u32>, size_t> event_index;
  std::vector<Event> events;
  std::string printed;
  Program* program = nullptr;
  Dim grid{}, ntid{}, cluster{1, 1, 1};
  u32 dynamic_bytes = 0;
  std::vector<u8> params;
  u32 stack_bytes = 0;  // of a thread, for calls whose depth nobody knows ahead
  u64 resident = 0;     // blocks that the GPU holds at a time; 0: not known
  u64 workspace = 0;    // address of the grid's barrier for grid.sync(); 0: not cooperative
  u64 steps = 0, step_limit = 0;
  u64 cycles = 0;                             // as the last look at a clock saw it
  double deadline = 0;                        // as cpu_seconds() counts
  bool sampling = false;                      // counts only: no races, nothing undefined
  bool tracing = false;                       // keeps what a launch uses
  bool follows = false;                       // the launch before may still run
  u64 first_block = 0, last_block = ~u64{0};  // of each launch; the last one is left out
  bool out_of_time = false, deadlocked = false, trapped = false;

  // Reads of shared memory that raced in a look at this call, and how (doubts.hpp). who: the
  // reader's clock.
  struct Read {
    u32 launch, block, who, pc;
    auto operator<=>(const Read&) const = default;
  };
  std::map<Read, Event> doubts;
  bool looks_again = false;  // what they read is undefined
  bool used = false;         // and something comes of it
  u32 launches = 0;          // of this look
  // Regions as the call found them, and as the first look left them.
  struct Kept {
    u64 size;
    std::vector<u8> data, defined;
  };
  std::vector<Kept> before, after;

  // Of this launch (dependency.hpp). held: it ends after those before it. published: blocks that
  // let the next one begin after a fence.
  struct Past { u32 block, who; };
  std::vector<Past> past_wait;  // Block::past_wait of all
  bool held = false;
  u64 published = 0;

  void launch();
  u64 block_bytes() const;                                                // of memory here, about
  u32 cluster_size() const { return cluster.x * cluster.y * cluster.z; }  // blocks
  u32 block_in_cluster(u32 index, u32 rank) const;                        // its linear number
  // Address of what grid.sync() counts in: its top bit changes when all blocks have come.
  u64 counter() const { return workspace ? workspace + 4 : 0; }
  Region* find(u64 address, i64& index);
  void report(Event event);
};

// What the head of a basic block holds. fuel: taken from the warp's turn: one, more for a block so
// long that the clock goes unseen. stack: of a function's first block: bytes that a call of it
// takes at least.
struct BlockOperands { i32 fuel, stack; };

// --- services of memory.cpp and schedule.cpp used by several files
Event event_at(const Warp& w, EventKind kind, int lane);
void check_defined(Warp& w, i32 slot, EventKind kind, bool predicate);
Flow leave(Warp& w, u32 lanes);
void complete_async(Warp& w);  // every copy the executing lanes issued
double cpu_seconds();          // of this thread
Flow park(Warp& w, Group::Wait why, u32 pc);
Flow block_head(Warp& w, const Ins& i);
Flow wait_in_turn(Warp& w);  // the instruction is done, and the others come first
// Whether the lanes an operation of the whole warp names have come to it. Those that have wait for
// the others; `incomplete` when nobody can bring the missing ones any more.
enum class Assembly { complete, waiting, incomplete };
Assembly assemble(Warp& w, u32 members, Group::Wait wait);
void report_missing(Warp& w, EventKind kind, u32 members);
// Whether what all 32 lanes must execute together may go ahead; else `flow` is what to return.
bool come_together(Warp& w, Flow& flow);
// The next instruction runs when the threads that it names have come to barrier `id`.
Flow meet(Warp& w, u32 id, u32 threads);
// Whether what a warp looks at, of which `look` tells, is as before, so that it waits.
bool looks_again(Warp& w, Look look);
bool is_wgmma(const Ins& i);
// A finding where one of these registers is the result of a wgmma that is under way.
void check_in_flight(Warp& w, const i32* slots, u32 count);
void mark_undefined(Warp& w, i32 slot, u32 lanes, u32 origin);
void forget_taint(Warp& w);             // where no register holds an undefined value any more
Flow never_set(Warp& w, const Ins& i);  // stands ahead of what may read a register without a value

// --- operation tables
// The operands that a handler takes, its outputs before ">", one letter each:
//   p  a predicate                      P  the same, or absent
//   n  a register of 32 bits or less    N  the same, or absent
//   w  a register of 64 bits            W  the same, or absent
//   v  a register of Ins::dwidth bytes  V  the same, or absent
//   a  an address: a register (or absent) and its width in bytes, two operands
//   i  a plain number                   -  absent
// Inputs may also be constants and special registers, which sit in slots of their own. Behind "*"
// the operands are in the pool. Python holds every operand against this (operation.py), and so
// does program.cpp, whoever packed the program.
//
// `sound` says whether the numbers of an instruction are ones that the handler copes with.
using Sound = bool (*)(const Program&, const Ins&);
struct Named {
  const char* name;
  Handler handler;
  std::string shape;
  Sound sound = nullptr;
};
using Table = std::vector<Named>;
void add_arithmetic(Table&);
void add_conversions(Table&);
void add_memory(Table&);
void add_async(Table&);
void add_mbarrier(Table&);
void add_control(Table&);
void add_schedule(Table&);
void add_warp(Table&);
void add_matrix(Table&);
void add_proxy(Table&);
void add_bulk(Table&);
void add_store_async(Table&);
void add_wgmma(Table&);
void add_cluster(Table&);
void add_print(Table&);
void add_clocks(Table&);
void add_dependency(Table&);
const Table& operations();

}  // namespace sim
