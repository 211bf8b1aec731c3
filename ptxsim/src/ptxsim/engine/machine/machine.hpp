// What a launch runs on: device memory, and what all blocks share.
#pragma once

#include <atomic>
#include <compare>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "../program/program.hpp"
#include "block.hpp"
#include "memo.hpp"
#include "region.hpp"
#include "watching.hpp"

namespace sim {

// In order of their numbers; from the last to the first; other values are seeds of permutations.
enum Order : u32 { FORWARDS, BACKWARDS };

inline std::atomic<bool> interrupted = false;  // somebody wants all launches to end

struct Machine {
  std::vector<std::unique_ptr<Region>> regions;
  u64 heap_next = u64{7} << 44;  // where malloc in kernels goes on: no address comes again
  u64 heap_used = 0;             // bytes
  Flags flags;                   // in global memory, of this launch
  u64 changes = 0;               // of global memory, and by atomic operations
  u64 stores = 0;                // the same, and those that change nothing
  std::map<std::tuple<u32, u32, u32>, size_t> event_index;
  std::vector<Event> events;
  // Of this launch (conflicts.hpp): places that a warp asked until they changed, and races by
  // both instructions and place, which are none where somebody asks or compares.
  struct Suspended {
    Event event;
    bool first;
  };
  std::unordered_set<u64> awaited;
  std::unordered_set<u64> compared;  // words of global memory that somebody compared and swapped
  std::map<std::tuple<u32, u32, u64>, Suspended> suspended;
  // Of this launch (early_looks.hpp): who looked last at a word, by address; and what words held
  // before a write that no fence has followed.
  struct Stale {
    u64 before;  // the value
    u32 bytes;
    Region::Stamp write;
    std::vector<u32> seen_by;  // blocks, which see the new value from now on
  };
  std::unordered_map<u64, Region::Stamp> looks;
  std::unordered_map<u64, Stale> stale;
  // Memory of which some was read ahead of the first write there, in no order with it: regions, and
  // reads of shared memory by their instruction.
  std::unordered_set<i64> too_early_of;
  std::unordered_set<u32> too_early;
  // Words of shared memory that were read before anybody wrote there, and by which instructions.
  std::set<std::pair<u64, u32>> found_unwritten;
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
  Watching watching;                          // of elements that somebody watches
  u32 order = FORWARDS;                       // in which blocks and warps take turns
  std::vector<u32> warp_order;                // of each block
  u32 filler = POISON;                        // in shared and local memory that nobody has written
  u64 first_block = 0, last_block = ~u64{0};  // of each launch; the last one is left out
  u64 ended = 0, idle = 0;  // blocks of this launch; of these, stored nothing to global memory
  bool out_of_time = false, deadlocked = false, trapped = false;
  Memos memos;
  bool unrepeatable = false;  // this launch printed, or looked at a clock or at the heap

  // Reads that raced in a look at this call (suspect_reads.hpp). time: by the reader's clock.
  struct Read {
    u32 launch, block, time, pc;
    auto operator<=>(const Read&) const = default;
  };
  // How, and where: a cell and the thread that writes there, whose own read is in order.
  struct Suspicion {
    Event event;
    std::set<std::tuple<u64, u32, u32>> writes;  // address, number of the block, thread
    bool everywhere = false;                     // there were too many to keep
  };
  std::map<Read, Suspicion> suspect_reads;
  size_t suspect_writes = 0;
  bool looks_again = false;  // what they read is undefined
  bool used = false;         // and something comes of it
  u32 launches = 0;          // of this look
  // Regions as the call found them, and as the first look left them.
  struct Kept {
    u64 base, size;
    std::vector<u8> data;
    Zeroed<u8> defined;
    bool held;  // the data
    bool in_heap;
    u64 given;
    Region::Stamp freed;

    void hold(const Region& r) {
      data.assign(r.data, r.data + size);
      defined = r.defined;
      held = true;
    }
  };
  struct Memory {
    std::vector<Kept> regions;
    u64 heap_next = 0, heap_used = 0;
  };
  Memory before, after;

  // Of this launch (dependency.hpp). held: it ends after those before it. published: blocks that
  // let the next one begin after a fence.
  struct Past {
    u32 block;
    Epoch epoch;
  };
  std::vector<Past> past_wait;  // Block::past_wait of all
  bool held = false;
  u64 published = 0;

  void launch();
  u64 block_bytes() const;                                                // of memory here, about
  u32 cluster_size() const { return cluster.x * cluster.y * cluster.z; }  // blocks
  u32 block_in_cluster(u32 index, u32 rank) const;                        // its linear number
  // Address of what grid.sync() counts in: its top bit changes when all blocks have come.
  u64 counter() const { return workspace ? workspace + 4 : 0; }
  // The region that begins last at or below an address, if any.
  Region* locate(u64 address, i64& index);
  // The same for an access of a launch, which comes here first: hints lead to the same region.
  Region* find(u64 address, i64& index);
  void report(Event event);
};

Event event_at(const Warp& w, EventKind kind, int lane);  // of what the warp does now
// What else is said of an event of this kind, in the order of its record in findings/details.py.
void set_details(Event& e, std::initializer_list<i64> details);
// The calls that lead to what the event is about.
void note_calls(Event& e, const std::vector<u32>& stack);

// Where the block of this number lies in the grid, and a thread in its block.
Dim block_at(const Machine& m, u32 linear);
inline u32 linear(Dim at, Dim extents) { return at.x + extents.x * (at.y + extents.y * at.z); }
Dim thread_at(const Machine& m, u32 thread);

}  // namespace sim
