#include "global_races.hpp"

#include <algorithm>

#include "dependency.hpp"
#include "knowledge.hpp"

namespace sim {
namespace {

void global_race(Warp& w, int lane, const Region& r, i64 index, u64 at, u32 bytes, bool write,
                 bool other_write, bool same, const Region::Stamp& other) {
  Event e = event_at(w, RACE, lane);
  e.other_pc = other.pc & PC_MASK;
  e.address = r.base + at;
  e.size = bytes;
  e.space = GLOBAL;
  e.write = write;
  e.other_write = other_write;
  e.same_value = same;
  e.region = index;
  e.region_start = r.base;
  e.region_size = r.size;
  e.other_block = block_at(*w.block->machine, other.block - 1);
  e.other_thread = thread_at(*w.block->machine, other.who & 1023);
  w.block->machine->report(e);
}

// Whether an access to global memory is ordered before this warp's now. A block that has executed
// a fence is trusted with the order of its own threads.
bool settled(const Warp& w, int lane, const Region::Stamp& other) {
  if (other.block == w.block->linear + 1) return w.block->fenced || w.ordered(other.who, lane);
  return w.block->fenced && ordered_elsewhere(w, other.block - 1, other.who);
}

constexpr u32 LINE = 32;  // cells that share a record of reads

}  // namespace

void remember_reads(Warp& w, Region& r, const Access& a) {
  const Machine& m = *w.block->machine;
  if (m.sampling || u64(m.grid.x) * m.grid.y * m.grid.z == 1) return;
  const u32 shift = w.program->global_shift, me = w.block->linear + 1, who = w.stamp(0);
  const u64 several = (u64{1} << std::max(a.bytes >> shift, 1u)) - 1;
  if (r.lines.empty()) r.lines.resize((r.size >> shift) / LINE + 1);
  for (u32 rest = a.mask; rest;) {
    const u64 line = ((a.at[__builtin_ctz(rest)] - r.base) >> shift) / LINE;
    u64 cells = 0;
    for (; rest; rest &= rest - 1) {
      const u64 cell = (a.at[__builtin_ctz(rest)] - r.base) >> shift;
      if (cell / LINE != line) break;
      cells |= several << cell % LINE;
    }
    auto& [last, elsewhere] = r.lines[line];
    if (last.block == me && last.who == who) {
      last.cells |= u32(cells);
      continue;
    }
    if (last.block != me) elsewhere = last;
    last = {me, who, w.pc, u32(cells)};
  }
}

void trace(Warp& w, const Access& a, Use use) {
  Machine& m = *w.block->machine;
  if (__builtin_expect(!m.tracing, 1)) return;
  const u32 shift = w.program->global_shift;
  i64 index = -1;
  Region* r = nullptr;
  for (u32 rest = a.mask; rest; rest &= rest - 1) {
    const u64 at = a.at[__builtin_ctz(rest)];
    if (!r || !within(at, a.bytes, r->base, r->size)) r = m.find(at, index);
    if (!r || !within(at, a.bytes, r->base, r->size)) continue;
    if (r->uses.empty()) r->uses.resize((r->size >> shift) + 1);
    const u64 first = (at - r->base) >> shift, last = (at - r->base + a.bytes - 1) >> shift;
    const int late = w.home->triggered ? AFTER_TRIGGER : 0;
    for (u64 cell = first; cell <= last; ++cell) {
      r->uses[cell] |= u8(use << late);
      if (m.follows && cell < r->in_flight.size() && r->in_flight[cell])
        check_dependency(w, __builtin_ctz(rest), *r, index, r->base + (cell << shift), a.bytes,
                         r->in_flight[cell], use);
    }
  }
}

bool global_read(Warp& w, int lane, Region& r, i64 index, u64 address, u32 bytes, bool plain) {
  const u32 cell = 1u << w.program->global_shift;
  bool undefined = false;
  for (u64 at = address - r.base; at < address - r.base + bytes; at += cell) {
    if (!r.all_defined && !r.defined[at >> w.program->global_shift]) undefined = true;
    if (r.stamps.empty()) continue;
    const Region::Stamp& s = r.stamps[at >> w.program->global_shift];
    if (!s.block || !plain) continue;
    // A first guess ahead of an atomicCAS loop may read what other threads' atomics are changing.
    if (s.pc & ATOMIC_BIT || settled(w, lane, s)) continue;
    global_race(w, lane, r, index, at, bytes, false, true, false, s);
  }
  return undefined;
}

void global_write(Warp& w, int lane, Region& r, i64 index, u64 address, u32 bytes, bool same,
                  bool atomic, bool plain) {
  if (w.block->machine->sampling) return;
  const u32 cell = 1u << w.program->global_shift, me = w.block->linear + 1;
  if (r.stamps.empty()) r.stamps.resize((r.size + cell - 1) / cell);
  for (u64 at = address - r.base; at < address - r.base + bytes; at += cell) {
    const u64 place = at >> w.program->global_shift;
    if (!r.all_defined) r.defined[place] = 1;
    Region::Stamp& s = r.stamps[place];
    const bool both_atomic = atomic && s.pc & ATOMIC_BIT;
    if (s.block && plain && !both_atomic && !(same && s.block == me) && !settled(w, lane, s))
      global_race(w, lane, r, index, at, bytes, true, true, same, s);
    else if (!r.lines.empty() && plain && !atomic && !same)
      for (const auto& [last, elsewhere] = r.lines[place / LINE];
           const Region::Reads& read : {last, elsewhere}) {
        const Region::Stamp reader{read.block, read.who, read.pc};
        if (!read.block || read.block == me || !(read.cells >> place % LINE & 1) ||
            settled(w, lane, reader))
          continue;
        global_race(w, lane, r, index, at, bytes, true, false, false, reader);
        break;
      }
    s = {me, w.stamp(lane), w.pc | (atomic ? ATOMIC_BIT : 0)};
  }
}

}  // namespace sim
