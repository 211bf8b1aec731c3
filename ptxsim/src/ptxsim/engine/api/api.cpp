// The C interface that engine.py calls. Every pointer passed in stays owned by the caller.
#include <algorithm>
#include <new>
#include <stdexcept>

#include "../checks/watched.hpp"
#include "../limits.hpp"
#include "../machine/machine.hpp"
#include "../memory/cost.hpp"
#include "../program/operations.hpp"
#include "../program/packed_program.hpp"
#include "../schedule/parts.hpp"
#include "../schedule/repeats.hpp"
#include "../schedule/turns.hpp"
#include "../tensor_map.hpp"

using namespace sim;

namespace {

// No exception leaves this library.
template <class F> int guarded(F f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return NO_MEMORY;
  } catch (const std::length_error&) {
    return NO_MEMORY;
  } catch (...) {
    return REFUSED;
  }
}

// lazily: without the bytes of regions that live on, until a launch comes to them.
Machine::Memory kept(const Machine& m, bool lazily = false) {
  Machine::Memory kept{{}, m.heap_next, m.heap_used};
  kept.regions.reserve(m.regions.size());
  for (const auto& r : m.regions) {
    kept.regions.push_back({r->base, r->size, {}, {}, false, r->in_heap, r->given, r->freed});
    if (!lazily || r->in_heap) kept.regions.back().hold(*r);
  }
  return kept;
}

// What malloc gave since then is gone, and what was freed is there again.
void put_back(Machine& m, const Machine::Memory& kept) {
  m.heap_next = kept.heap_next;
  m.heap_used = kept.heap_used;
  m.regions.resize(kept.regions.size());
  for (size_t k = 0; k < kept.regions.size(); ++k) {
    const Machine::Kept& from = kept.regions[k];
    if (!m.regions[k]) m.regions[k] = std::make_unique<Region>();
    Region& r = *m.regions[k];
    if (!from.held) continue;
    if (from.in_heap) {
      r = Region{};
      r.base = from.base;
      r.in_heap = true;
      r.own = from.data;
      r.data = r.own.data();
      r.given = from.given;
      r.freed = from.freed;
    }
    r.size = from.size;
    if (!from.in_heap) std::copy(from.data.begin(), from.data.end(), r.data);
    r.defined = from.defined;
  }
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int sim_operations() { return int(operations().size()); }
const char* sim_layout() { return LAYOUT; }
const char* sim_operation(int k) { return operations()[k].name.c_str(); }
const char* sim_operation_shape(int k) { return operations()[k].shape.c_str(); }

// Makes a program; `bad` becomes the index of an instruction that is refused (see program.hpp).
int sim_program(const PackedProgram* packed, Program** made, u64* bad) {
  *made = nullptr;
  *bad = SOUND;
  return guarded([&]() -> int {
    auto program = std::make_unique<Program>();
    *bad = load(*packed, *program);
    if (*bad != SOUND) return REFUSED;
    *made = program.release();
    return RAN;
  });
}
void sim_program_free(Program* p) { delete p; }

Machine* sim_machine() { return new (std::nothrow) Machine; }
// Run only the blocks first ≤ b < last of each launch, and only count. Regions must be `defined`.
void sim_sample(Machine* m, u64 first, u64 last) {
  m->sampling = true;
  m->first_block = first;
  m->last_block = last;
}
void sim_machine_free(Machine* m) { delete m; }

// Adds a region among those that are there, by its address. If `data` holds fewer bytes than the
// region, it stands for all of it (Region::made_up).
int sim_region(Machine* m, u64 base, u64 size, u8* data, u64 held, int defined, u32 cell) {
  return guarded([&]() -> int {
    if (base > OFFSET_MASK || size > OFFSET_MASK - base || !cell) return REFUSED;
    if (held < size && (held < MADE_UP_BYTES || !defined)) return REFUSED;
    i64 before = -1;
    const Region* const last = m->locate(base, before);
    if (last && base - last->base < std::max<u64>(last->size, 1)) return REFUSED;
    const auto next = m->regions.begin() + (before + 1);
    if (next != m->regions.end() && (*next)->base - base < size) return REFUSED;
    auto r = std::make_unique<Region>();
    r->base = base;
    r->size = size;
    r->data = data;
    r->made_up = held < size;
    r->all_defined = defined;
    if (!defined) r->defined.resize((size + cell - 1) / cell);
    m->regions.insert(next, std::move(r));
    return RAN;
  });
}

// How many bytes from this place on hold something, up to `bytes`.
u64 sim_defined(Machine* m, u64 index, u64 from, u64 bytes, u32 cell) {
  if (index >= m->regions.size() || !cell) return 0;
  const Region& r = *m->regions[index];
  if (!within(from, bytes, r.size)) return 0;
  if (r.all_defined) return bytes;
  for (u64 at = from / cell; at * cell < from + bytes; ++at)
    if (!r.defined[at]) return at * cell > from ? at * cell - from : 0;
  return bytes;
}

// Marks bytes written by the host: a memset, a copy.
int sim_define(Machine* m, u64 index, u64 from, u64 bytes, u32 cell) {
  if (index >= m->regions.size() || !cell) return REFUSED;
  Region& r = *m->regions[index];
  if (!within(from, bytes, r.size)) return REFUSED;
  if (!r.all_defined)
    std::fill(r.defined.begin() + from / cell, r.defined.begin() + (from + bytes + cell - 1) / cell,
              1);
  return RAN;
}

// Makes bytes of one region as defined as those of another that they were copied from.
int sim_copy_defined(Machine* m, u64 source, u64 from, u64 target, u64 to, u64 bytes, u32 cell) {
  if (source >= m->regions.size() || target >= m->regions.size() || !cell) return REFUSED;
  const Region& s = *m->regions[source];
  Region& t = *m->regions[target];
  if (!within(from, bytes, s.size) || !within(to, bytes, t.size)) return REFUSED;
  for (u64 at = to / cell; bytes && !t.all_defined && at * cell < to + bytes; ++at) {
    const u64 inside = std::max(at * cell, to) - to;
    const u8 now = s.all_defined || s.defined[(from + inside) / cell];
    const bool whole = at * cell >= to && (at + 1) * cell <= to + bytes;
    t.defined[at] = whole ? now : now | t.defined[at];
  }
  return RAN;
}

// Marks a region as memory that nobody has written yet.
int sim_undefine(Machine* m, u64 index) {
  if (index >= m->regions.size()) return REFUSED;
  Region& r = *m->regions[index];
  std::fill(r.defined.begin(), r.defined.end(), 0);
  return RAN;
}

// Makes the cells of all regions narrower: what each knows holds for the new ones in its place.
int sim_refine(Machine* m, u32 before, u32 cell) {
  return guarded([&]() -> int {
    if (!cell || before % cell) return REFUSED;
    for (const auto& r : m->regions) {
      if (r->all_defined) continue;
      Zeroed<u8> defined(r->defined.size() * (before / cell));
      for (size_t at = 0; at < defined.size(); ++at) defined[at] = r->defined[at * cell / before];
      r->defined = std::move(defined);
    }
    return RAN;
  });
}

// Frees a region for good: it has no bytes, and nothing is known of them.
int sim_retire(Machine* m, u64 index) {
  if (index >= m->regions.size()) return REFUSED;
  Region freed{};
  freed.base = m->regions[index]->base;
  *m->regions[index] = std::move(freed);
  return RAN;
}

// Gives a region another size, at most the one that it was made with: 0 while it is freed.
int sim_resize(Machine* m, u64 index, u64 size) {
  if (index >= m->regions.size()) return REFUSED;
  m->regions[index]->size = size;
  return RAN;
}

// Blocks of a cluster in the launches to come, which check that they divide the grid.
void sim_cluster(Machine* m, const u32* extents) {
  m->cluster = {extents[0], extents[1], extents[2]};
}

// How the launches to come run: the Order of blocks and warps, and what memory that CUDA leaves
// undefined holds.
void sim_order(Machine* m, u32 order, u32 filler) {
  m->order = order;
  m->filler = filler;
}

// Whether launches keep what they use.
void sim_trace(Machine* m, int on) { m->tracing = on; }
// Whether the launches to come may begin before the launch ahead of them, which was traced, has
// ended. They must be traced, too.
void sim_follows(Machine* m, int yes) { m->follows = yes; }
// How many cells of a region have a Use in `uses`: none when the last launch did not use it.
u64 sim_uses(Machine* m, u64 index, const u8** uses) {
  if (index >= m->regions.size()) return 0;
  *uses = m->regions[index]->uses.data();
  return m->regions[index]->uses.size();
}

// How many cells of a region have a Stamp in `stamps`, of the last write in the last launch: none
// when it wrote nothing there.
u64 sim_writers(Machine* m, u64 index, const Region::Stamp** stamps) {
  if (index >= m->regions.size()) return 0;
  *stamps = m->regions[index]->stamps.data();
  return m->regions[index]->stamps.size();
}

// Blocks of the last launch that stored nothing to global memory, and how many came to their end.
u64 sim_idle(Machine* m, u64* ended) {
  *ended = m->ended;
  return m->idle;
}

// Of the next launch up to `most` writes are kept to elements: each has four numbers, which are the
// first fields of WatchedElement.
int sim_watch(Machine* m, const u64* elements, u64 count, u64 most) {
  return guarded([&]() -> int {
    m->watching.elements.clear();
    for (const u64* e = elements; e != elements + 4 * count; e += 4)
      m->watching.elements.push_back({e[0], e[1], e[2], e[3]});
    m->watching.most = most;
    begin_watch(*m);
    return RAN;
  });
}
// How many writes are kept, and how many are not.
u64 sim_writes(Machine* m, const Write** writes, u64* left_out) {
  *writes = m->watching.writes.data();
  *left_out = m->watching.left_out;
  return m->watching.writes.size();
}

// How many regions there are: those that were added, and behind them those of malloc in kernels.
u64 sim_regions(Machine* m) { return m->regions.size(); }
// The bytes that malloc was asked for.
u64 sim_given(Machine* m, u64 index) {
  return index < m->regions.size() ? m->regions[index]->given : 0;
}

// Keeps the regions, unless they have more than `most` bytes, for second looks at what is to come:
// one launch, or whatever it is if not `lazily`.
int sim_snapshot(Machine* m, u64 most, int lazily) {
  return guarded([&]() -> int {
    m->before = m->after = {};
    m->suspect_reads.clear();
    m->suspect_writes = 0;
    m->looks_again = m->used = false;
    m->launches = 0;
    u64 bytes = 0;
    for (const auto& r : m->regions) {
      if (r->size > most - bytes) return RAN;
      bytes += r->size;
    }
    m->before = kept(*m, lazily);
    return RAN;
  });
}
// Puts the regions back to what they were. doubts: takes what the reads in doubt get for undefined,
// and refuses where there are none. Refuses where the regions were not kept.
int sim_replay(Machine* m, int doubts) {
  return guarded([&]() -> int {
    if (m->before.regions.empty() || (doubts && m->suspect_reads.empty())) return REFUSED;
    if (m->after.regions.empty() || !doubts) m->after = kept(*m);
    put_back(*m, m->before);
    m->looks_again = doubts;
    m->used = m->trapped = false;
    m->launches = 0;
    return RAN;
  });
}
// After second looks that do not count: the regions are what the first one made of them.
void sim_undo_looks(Machine* m) {
  put_back(*m, m->after);
  m->looks_again = m->used = m->trapped = m->out_of_time = m->deadlocked = false;
}

// Whether the launch that is asked for, in so many bytes, needs not run (repeats.hpp): a Status.
int sim_recall(Machine* m, const u8* asked, u64 length) {
  return guarded([&]() -> int {
    return recall(*m, {reinterpret_cast<const char*>(asked), length}) ? RAN : REFUSED;
  });
}

// Ends launches under way, and all to come while it is `on`, as if they had trapped; from another
// thread.
void sim_interrupt(int on) { interrupted = on != 0; }

// Into how many parts, which run at the same time, a launch may fall from now on.
void sim_jobs(u32 most) { jobs = most; }

// Returns a Status.
int sim_launch(Machine* m, Program* p, const u32* grid, const u32* block, u32 dynamic_bytes,
               const u8* params, u64 params_length, u64 step_limit, double seconds, u64 resident,
               u32 stack_bytes, u64 workspace) {
  return guarded([&]() -> int {
    for (int axis = 0; axis < 3; ++axis)
      if (!grid[axis] || grid[axis] > u32(INT32_MAX) || (axis && grid[axis] > 0xffff) ||
          !block[axis] || block[axis] > MAX_THREADS)
        return REFUSED;
    if (u64(block[0]) * block[1] * block[2] > MAX_THREADS || dynamic_bytes > MAX_SHARED_BYTES)
      return REFUSED;
    const u32 cluster[] = {m->cluster.x, m->cluster.y, m->cluster.z};
    for (int axis = 0; axis < 3; ++axis)
      if (!cluster[axis] || cluster[axis] > MAX_CLUSTER || grid[axis] % cluster[axis])
        return REFUSED;
    if (m->cluster_size() > MAX_CLUSTER) return REFUSED;
    m->program = p;
    m->grid = {grid[0], grid[1], grid[2]};
    m->ntid = {block[0], block[1], block[2]};
    m->dynamic_bytes = dynamic_bytes;
    if (m->block_bytes() > MAX_BLOCK_BYTES) return TOO_LARGE;
    m->params.assign(params, params + params_length);
    m->resident = resident;
    m->stack_bytes = stack_bytes;
    m->workspace = workspace;
    m->step_limit = m->steps + step_limit;
    m->deadline = cpu_seconds() + seconds;
    p->arrays.back().size = p->shared_bytes - p->arrays.back().start + dynamic_bytes;
    p->hints.assign(p->code.size(), Hint{});
    p->source_hints.assign(p->code.size(), Hint{});
    m->launch();
    if (interrupted) return TRAPPED;
    return m->out_of_time ? OUT_OF_TIME : m->deadlocked ? DEADLOCKED : m->trapped ? TRAPPED : RAN;
  });
}

// Makes a tensor map as cuTensorMapEncodeTiled does; returns why it cannot, or null.
const char* sim_tensor_map(u8* map, u32 type, u32 rank, u64 address, const u64* extents,
                           const u64* strides, const u32* box, const u32* steps,
                           const u32* choices) {
  const TensorMapRequest request{type,  rank,       address,    extents,    strides,   box,
                                 steps, choices[0], choices[1], choices[2], choices[3]};
  TensorMap made;
  const char* const why = encode(request, made);
  if (why) return why;
  std::memset(map, 0, TENSOR_MAP_BYTES);
  std::memcpy(map, &made, sizeof made);
  return nullptr;
}

u64 sim_events(Machine* m) { return m->events.size(); }
const Event* sim_event(Machine* m) { return m->events.data(); }
void sim_clear_events(Machine* m) {
  m->events.clear();
  m->event_index.clear();
}
const char* sim_printed(Machine* m) { return m->printed.c_str(); }
const FlowCount* sim_blocks(Program* p) { return p->blocks.data(); }
const FlowCount* sim_guarded(Program* p) { return p->guarded.data(); }
const MemoryCount* sim_memory(Program* p) { return p->memory.data(); }
const MemoryCount* sim_source(Program* p) { return p->source.data(); }
// Null when nothing was kept.
const Pattern* sim_patterns(Program* p) {
  return p->patterns.empty() ? nullptr : p->patterns.data();
}

// What an access costs whose lanes in `mask` move `bytes` each at these 32 shared addresses.
u32 sim_shared_wavefronts(const u32* at, u32 mask, u32 bytes) {
  return bytes && bytes <= 16 ? shared_wavefronts(at, mask, bytes) : 0;
}

}  // extern "C"
#pragma GCC visibility pop
