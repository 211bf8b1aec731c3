#include "global_races.hpp"

#include <algorithm>

#include "../program/kinds.hpp"
#include "conflicts.hpp"
#include "copies_under_way.hpp"
#include "dependency.hpp"
#include "release_acquire.hpp"
#include "peers.hpp"
#include "watched.hpp"

namespace sim {
namespace {

Event event_between(Warp& w, EventKind kind, int lane, const Region& r, i64 index, u64 at,
                    u32 bytes, const Region::Stamp& other) {
  Event e = event_at(w, kind, lane);
  e.other_pc = other.pc & PC_MASK;
  e.address = r.base + at;
  e.size = bytes;
  e.space = GLOBAL;
  e.region = index;
  e.region_start = r.base;
  e.region_size = r.size;
  e.other_block = block_at(*w.block->machine, other.block - 1);
  e.other_thread = thread_at(*w.block->machine, other.epoch.thread());
  return e;
}

void global_race(Warp& w, int lane, const Region& r, i64 index, u64 at, u32 bytes, bool write,
                 bool other_write, bool same, const Region::Stamp& other, bool first = false) {
  Event e = event_between(w, RACE, lane, r, index, at, bytes, other);
  e.write = write;
  e.other_write = other_write;
  e.same_value = same;
  if (!may_be_missing(other)) return conflict(w, e, other, e.address, first);
  e.kind = BULK_COPY_RACE;
  w.block->machine->report(e);
}

bool of_own_warp(const Warp& w, const Region::Reads& read) {
  return read.block == w.home->linear + 1 && read.epoch.warp() == w.index;
}

bool is_volatile(const Warp& w, u32 pc) {
  return w.program->has_volatile && strength(*w.program, pc) == Strength::is_volatile;
}

// While a launch writes nothing to a region, the lanes that read there are told apart, which takes
// time, in so many executions of an instruction only.
constexpr u64 FIRST_EXECUTIONS = 256;
constexpr u32 TOLD_APART = ~PC_MASK;

// The lanes of `mask` read cells of one line, of which `known` were read before.
void tell_apart(const Warp& w, Region& r, const Access& a, u32 mask, u32 known) {
  const u32 shift = w.program->global_shift, count = std::max(a.bytes >> shift, 1u);
  for (; mask; mask &= mask - 1) {
    const u8 lane = u8(__builtin_ctz(mask));
    const u64 first = (a.at[lane] - r.base) >> shift;
    for (u64 cell = first; cell < first + count; ++cell, known |= 1u << (cell - 1) % LINE) {
      Region::Lanes& readers = r.readers[cell];
      if (!(known >> cell % LINE & 1)) readers = {lane, lane};
      else if (readers.first == readers.second) readers.second = lane;
    }
  }
}

void remember_in(Warp& w, Region& r, const Access& a) {
  const u32 shift = w.program->global_shift, me = w.block->linear + 1;
  const Epoch now = w.epoch(0);
  const u64 several = (u64{1} << std::max(a.bytes >> shift, 1u)) - 1;
  const bool by_lane = !r.stamps.empty() || w.program->memory[w.pc].requests <= FIRST_EXECUTIONS;
  if (r.lines.empty()) r.lines.resize((r.size >> shift) / LINE + 1);
  if (r.readers.empty()) r.readers.resize(r.lines.size() * LINE);
  for (u32 rest = a.mask; rest;) {
    const u64 line = ((a.at[__builtin_ctz(rest)] - r.base) >> shift) / LINE;
    const u32 all = rest;
    u64 cells = 0;
    for (; rest; rest &= rest - 1) {
      const u64 cell = (a.at[__builtin_ctz(rest)] - r.base) >> shift;
      if (cell / LINE != line) break;
      cells |= several << cell % LINE;
    }
    auto& [last, before, elsewhere] = r.lines[line];
    if (last.block != me || last.epoch != now || is_volatile(w, last.pc) != is_volatile(w, w.pc)) {
      if (last.block != me) elsewhere = last;
      else if (last.epoch.thread() != now.thread()) before = last;
      last = {me, now, w.pc | TOLD_APART, 0};
    }
    if (!by_lane) last.pc &= PC_MASK;
    if (last.pc & TOLD_APART) tell_apart(w, r, a, all & ~rest, last.cells);
    last.cells |= u32(cells);
  }
}

}  // namespace

void remember_reads(Warp& w, Region* common, const Access& a) {
  if (w.block->machine->sampling) return;
  if (common) return remember_in(w, *common, a);
  for (Access rest = a; rest.mask;) {
    i64 index;
    Region& r = *w.block->machine->find(rest.at[rest.first()], index);
    Access own = rest;
    for (u32 lanes = rest.mask; lanes; lanes &= lanes - 1)
      if (const int l = __builtin_ctz(lanes); !within(rest.at[l], rest.bytes, r.base, r.size))
        own.mask &= ~(1u << l);
    remember_in(w, r, own);
    rest.mask &= ~own.mask;
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

bool global_read(Warp& w, int lane, Region& r, i64 index, u64 address, u32 bytes, bool checked) {
  const u32 cell = 1u << w.program->global_shift;
  bool undefined = false;
  for (u64 at = address - r.base; at < address - r.base + bytes; at += cell) {
    if (!r.all_defined && !r.defined[at >> w.program->global_shift]) undefined = true;
    if (r.stamps.empty()) continue;
    const Region::Stamp& s = r.stamps[at >> w.program->global_shift];
    if (!s.block || !checked || s.pc & SAME_BIT || in_order(w, lane, s)) continue;
    if (s.pc & ATOMIC_BIT && !may_be_missing(s))
      look_at_atomic(w, event_between(w, LOOKS_AT_ATOMIC, lane, r, index, at, bytes, s));
    else global_race(w, lane, r, index, at, bytes, false, true, false, s);
  }
  return undefined;
}

bool global_read_by_proxy(Warp& w, int lane, Region& r, i64 index, u64 address, u32 bytes) {
  const bool undefined = global_read(w, lane, r, index, address, bytes, true);
  if (r.stamps.empty()) return undefined;
  for (u64 at = address - r.base; at < address - r.base + bytes;
       at += 1u << w.program->global_shift) {
    const Region::Stamp& s = r.stamps[at >> w.program->global_shift];
    if (!s.block || s.pc & ATOMIC_BIT || !in_order(w, lane, s) || proxy_sees(w, s)) continue;
    if (is_bulk_store(w.program->code[s.pc & PC_MASK])) continue;
    Event e = event_between(w, PROXY_FENCE_MISSING, lane, r, index, at, bytes, s);
    e.other_write = true;
    w.block->machine->report(e);
    break;
  }
  return undefined;
}

void check_read_only(Warp& w, int lane, const Region& r, i64 index, u64 address, u32 bytes) {
  if (r.stamps.empty()) return;
  for (u64 at = address - r.base; at < address - r.base + bytes;
       at += 1u << w.program->global_shift) {
    const Region::Stamp& s = r.stamps[at >> w.program->global_shift];
    if (!s.block) continue;
    Event e = event_between(w, READ_ONLY_WRITTEN, lane, r, index, at, bytes, s);
    e.other_write = true;
    e.same_value = (s.pc & SAME_BIT) != 0;
    return w.block->machine->report(e);
  }
}

void global_write(Warp& w, int lane, Region& r, i64 index, u64 address, u32 bytes, bool same,
                  bool atomic, bool checked) {
  if (w.block->machine->sampling) return;
  if (__builtin_expect(r.watched, 0)) note_write(w, lane, r, address, bytes);
  const u32 cell = 1u << w.program->global_shift, me = w.block->linear + 1;
  if (r.stamps.empty()) r.stamps.resize((r.size + cell - 1) / cell);
  // What is there already does no harm again: within a block, and where somebody may look for it.
  const bool again = same && is_volatile(w, w.pc);
  if (r.copied && checked && !same)
    if (const Region::Stamp copy = still_reads(w, address, bytes); copy.block) {
      Event e =
          event_between(w, OPERAND_OVERWRITTEN, lane, r, index, address - r.base, bytes, copy);
      e.write = true;
      w.block->machine->report(e);
    }
  for (u64 at = address - r.base; at < address - r.base + bytes; at += cell) {
    const u64 place = at >> w.program->global_shift;
    const bool first = !r.all_defined && !r.defined[place];
    if (first) r.defined[place] = 1;
    Region::Stamp& s = r.stamps[place];
    const bool both_atomic = atomic && s.pc & ATOMIC_BIT;
    // The next atomic operation must be in order with the plain write below this one, too.
    if (atomic && s.block && !both_atomic) {
      if (r.hidden.empty()) r.hidden.resize(r.stamps.size());
      r.hidden[place] = s;
    }
    const bool below = both_atomic && scopes_meet(w, s);
    const Region::Stamp before = !below ? s : r.hidden.empty() ? Region::Stamp{} : r.hidden[place];
    if (checked && before.block && !(same && (again || before.block == me)) &&
        !in_order(w, lane, before) && !w.has_observed(r.base + at, before, lane))
      global_race(w, lane, r, index, at, bytes, true, true, same, before,
                  !same && before.pc & ATOMIC_BIT);
    else if (!r.lines.empty() && checked && !atomic && !same)
      for (const auto& [last, other, elsewhere] = r.lines[place / LINE];
           const Region::Reads* read : {&last, &other, &elsewhere}) {
        if (!read->block || !(read->cells >> place % LINE & 1)) continue;
        Region::Stamp reader{read->block, read->epoch, read->pc & PC_MASK};
        if (of_own_warp(w, *read)) {
          if (read != &last || !(last.pc & TOLD_APART))
            continue;  // nobody knows which of its lanes
          const auto [first, second] = r.readers[place];
          reader.epoch = reader.epoch.of_lane(first == lane ? second : first);
        }
        if (in_order(w, lane, reader)) continue;
        global_race(w, lane, r, index, at, bytes, true, false, false, reader, first);
        break;
      }
    const bool as_before = same && !first && (!s.block || s.pc & SAME_BIT);
    s = {me, w.epoch(lane), w.pc | (atomic ? ATOMIC_BIT : 0) | (as_before ? SAME_BIT : 0)};
  }
}

}  // namespace sim
