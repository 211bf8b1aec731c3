// The C interface that engine.py calls. Every pointer passed in stays owned by the caller.
#include <algorithm>
#include <new>

#include "lanes.hpp"

using namespace sim;

namespace {

const Table& operations() {
  static const Table table = [] {
    Table t;
    add_arithmetic(t);
    add_conversions(t);
    add_memory(t);
    add_async(t);
    add_mbarrier(t);
    add_control(t);
    add_schedule(t);
    add_warp(t);
    add_matrix(t);
    return t;
  }();
  return table;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// One instruction as Python packs it; the layout is mirrored in engine.py.
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
  u32 slots, predicates, entry, local_bytes, shared_bytes, shared_cell, global_cell;
};

int sim_operations() { return int(operations().size()); }
const char* sim_operation(int k) { return operations()[k].name; }
int sim_special_registers() { return SPECIALS; }
u64 sim_event_bytes() { return sizeof(Event); }
u64 sim_instruction_bytes() { return sizeof(PackedIns); }

Program* sim_program(const PackedProgram* p) {
  auto* program = new Program;
  program->pool.assign(p->pool, p->pool + p->pool_length);
  program->code.resize(p->length);
  for (u64 k = 0; k < p->length; ++k) {
    const PackedIns& in = p->code[k];
    Ins& out = program->code[k];
    out.run = operations()[in.operation].handler;
    std::copy(in.o, in.o + 8, out.o);
    out.imm = in.imm;
    out.x = in.pool < 0 ? nullptr : program->pool.data() + in.pool;
    out.guard = in.guard;
    out.negate = in.negate;
    out.width = in.width;
    out.vec = in.vec;
    out.space = in.space;
    out.flags = in.flags;
    out.dwidth = in.dwidth;
  }
  program->constants.assign(p->constants, p->constants + p->constants_length);
  std::copy(p->special, p->special + SPECIALS, program->special);
  program->arrays.assign(p->arrays, p->arrays + p->arrays_length);
  program->private_ranges.assign(p->private_ranges, p->private_ranges + p->private_length);
  program->reach_row = u32((p->ranks + 31) / 32);
  program->reach.assign(p->reach, p->reach + p->ranks * program->reach_row);
  program->slots = p->slots;
  program->predicates = p->predicates;
  program->entry = p->entry;
  program->local_bytes = p->local_bytes;
  program->shared_bytes = p->shared_bytes;
  program->shared_shift = __builtin_ctz(p->shared_cell);
  program->global_shift = __builtin_ctz(p->global_cell);
  program->blocks.resize(p->length);
  program->guarded.resize(p->length);
  program->memory.resize(p->length);
  program->source.resize(p->length);
  return program;
}
void sim_program_free(Program* p) { delete p; }

Machine* sim_machine() { return new Machine; }
// Run only the blocks first ≤ b < last of each launch, and only count. Regions must be `defined`.
void sim_sample(Machine* m, u64 first, u64 last) {
  m->sampling = true;
  m->first_block = first;
  m->last_block = last;
}
void sim_machine_free(Machine* m) { delete m; }

// Regions must be added in order of address.
// Returns 0, or 4 when there is no memory for its shadow.
int sim_region(Machine* m, u64 base, u64 size, u8* data, int defined, u32 cell) try {
  auto r = std::make_unique<Region>();
  r->base = base;
  r->size = size;
  r->data = data;
  r->all_defined = defined;
  if (!defined) r->defined.assign((size + cell - 1) / cell, 0);
  m->regions.push_back(std::move(r));
  return 0;
} catch (const std::bad_alloc&) {
  return 4;
}

// Marks bytes written by the host: a memset, a copy.
void sim_define(Machine* m, u64 index, u64 from, u64 bytes, u32 cell) {
  Region& r = *m->regions[index];
  if (!r.all_defined) std::fill(r.defined.begin() + from / cell, r.defined.begin() + (from + bytes + cell - 1) / cell, 1);
}

// Returns 0: ran, 1: out of time, 2: deadlock, 3: trap, 4: out of memory. `seconds`: CPU time of
// this thread.
int sim_launch(Machine* m, Program* p, const u32* grid, const u32* block, u32 dynamic_bytes,
               const u8* params, u64 params_length, u64 step_limit, double seconds) try {
  m->program = p;
  m->grid = {grid[0], grid[1], grid[2]};
  m->ntid = {block[0], block[1], block[2]};
  m->dynamic_bytes = dynamic_bytes;
  m->params.assign(params, params + params_length);
  m->params.resize(params_length + 16);
  m->step_limit = m->steps + step_limit;
  m->deadline = cpu_seconds() + seconds;
  p->arrays.back().size = dynamic_bytes;
  p->hints.assign(p->code.size(), Hint{});
  p->source_hints.assign(p->code.size(), Hint{});
  m->launch();
  return m->out_of_time ? 1 : m->deadlocked ? 2 : m->trapped ? 3 : 0;
} catch (const std::bad_alloc&) {
  return 4;
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

}  // extern "C"
#pragma GCC visibility pop
