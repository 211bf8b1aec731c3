
#include "shared_races.hpp"

#include <algorithm>

#include "../limits.hpp"
#include "../program/kinds.hpp"
#include "async_proxy.hpp"
#include "dependency.hpp"
#include "doubts.hpp"
#include "global_races.hpp"
#include "knowledge.hpp"
#include "peers.hpp"
#include "undefined.hpp"

namespace sim {

static Dim thread_of(const Warp& w, u32 who) { return thread_at(*w.block->machine, who & 1023); }

// --- addresses

void resolve_addresses(Warp& w, const Ins& i, Access& a) {
  a.mask = w.exec;
  a.bytes = i.width * i.vec;
  if (i.base() < 0) {
    std::fill(a.at, a.at + LANES, u64(i.offset()));
    return;
  }
  check_defined(w, i.base(), UNDEFINED_ADDRESS, false);
  if (i.base_bytes() == 8) {
    const u64* base = lanes<u64>(w, i.base());
    for (int l = 0; l < LANES; ++l) a.at[l] = base[l] + i.offset();
  } else {
    const u32* base = lanes<u32>(w, i.base());
    for (int l = 0; l < LANES; ++l) a.at[l] = u32(base[l] + u32(i.offset()));
  }
  if (a.mask != ALL) {
    u64 first = a.at[a.first()];
    for (int l = 0; l < LANES; ++l)
      if (!(a.mask >> l & 1)) a.at[l] = first;
  }
}

void drop_misaligned(Warp& w, Access& a, u8 space, bool write) {
  u64 bits = 0;
  for (int l = 0; l < LANES; ++l) bits |= a.at[l];
  if (!(bits & (a.bytes - 1))) return;
  for (int l = 0; l < LANES; ++l) {
    if (!(a.mask >> l & 1) || !(a.at[l] & (a.bytes - 1))) continue;
    Event e = event_at(w, MISALIGNED, l);
    e.address = a.at[l];
    e.size = a.bytes;
    e.space = space;
    e.write = write;
    if (space != SHARED) {
      i64 index = -1;
      if (Region* r = w.block->machine->find(a.at[l], index);
          r && within(a.at[l], 1, r->base, r->size)) {
        e.region = index;
        e.region_start = r->base;
        e.region_size = r->size;
      }
    }
    w.block->machine->report(e);
    a.mask &= ~(1u << l);
  }
}

static void out_of_bounds(Warp& w, Access& a, int lane, u8 space, bool write, i64 region, u64 start,
                          u64 size) {
  Event e = event_at(w, OUT_OF_BOUNDS, lane);
  e.address = a.at[lane];
  e.size = a.bytes;
  e.space = space;
  e.write = write;
  e.region = region;
  e.region_start = start;
  e.region_size = size;
  w.block->machine->report(e);
  a.mask &= ~(1u << lane);
}

struct Range { u64 first, last; };  // of the lanes' addresses
static Range range_of(const Access& a) {
  u64 first = a.at[0], last = a.at[0];
  for (int l = 1; l < LANES; ++l) {
    first = std::min(first, a.at[l]);
    last = std::max(last, a.at[l]);
  }
  return {first, last};
}

constexpr u64 NEARBY = u64{1} << 30;  // bytes: farther off, an address belongs to no allocation

Region* settle_global(Warp& w, Access& a, u8 space, bool write) {
  Machine& m = *w.block->machine;
  Hint& hint = hint_of(w, space);
  Range span = range_of(a);
  if (hint.holds(span.first, span.last, a.bytes)) return m.regions[hint.region].get();
  i64 common = -1;
  bool several = false;
  for (int l = 0; l < LANES; ++l) {
    if (!(a.mask >> l & 1)) continue;
    i64 index = -1;
    Region* r = m.find(a.at[l], index);
    if (!r || !within(a.at[l], a.bytes, r->base, r->size)) {
      // Name the nearest allocation, so that "12 bytes before B" can be said too.
      i64 next = r ? index + 1 : 0;
      bool before = next < i64(m.regions.size()) &&
                    (!r || m.regions[next]->base - a.at[l] < a.at[l] - (r->base + r->size)) &&
                    m.regions[next]->base - a.at[l] < NEARBY;
      if (before) index = next, r = m.regions[next].get();
      else if (r && a.at[l] - r->base > r->size + NEARBY) r = nullptr;
      out_of_bounds(w, a, l, space, write, r ? index : -1, r ? r->base : 0, r ? r->size : 0);
      continue;
    }
    if (common >= 0 && common != index) several = true;
    common = index;
  }
  if (common < 0 || several) return nullptr;
  Region* r = m.regions[common].get();
  hint.low = r->base;
  hint.high = r->base + r->size;
  hint.region = common;
  return r;
}

// Whether `address` lies closer to the start of `next` than behind the end of the array before it.
static bool closer(u64 address, const SharedArray& next, const SharedArray& before) {
  const u64 end = u64(before.start) + before.size;
  return address >= end && next.start - address < address - end;
}

void settle_shared(Warp& w, Access& a, bool write) {
  Hint& hint = hint_of(w, SHARED);
  Range span = range_of(a);
  if (hint.holds(span.first, span.last, a.bytes)) return;
  const auto& arrays = w.program->arrays;
  for (int l = 0; l < LANES; ++l) {
    if (!(a.mask >> l & 1)) continue;
    i64 nearest = -1;
    bool inside = false;
    for (size_t k = 0; k < arrays.size(); ++k) {
      if (a.at[l] >= arrays[k].start) nearest = k;
      inside = within(a.at[l], a.bytes, arrays[k].start, arrays[k].size);
      if (inside) {
        hint.low = arrays[k].start;
        hint.high = hint.low + arrays[k].size;
        break;
      }
    }
    if (inside) continue;
    // Below the first array, or within the red zone ahead of the next one: say "before" that one.
    for (size_t k = 0; k < arrays.size(); ++k)
      if (a.at[l] < arrays[k].start &&
          (nearest < 0 || closer(a.at[l], arrays[k], arrays[nearest]))) {
        nearest = k;
        break;
      }
    out_of_bounds(w, a, l, SHARED, write, nearest, nearest < 0 ? 0 : arrays[nearest].start,
                  nearest < 0 ? 0 : arrays[nearest].size);
  }
}

// --- races

void race(Warp& w, int lane, EventKind kind, u8 space, u64 address, u32 bytes, bool write,
          bool other_write, u32 other_pc, u32 other_who, const Dim& other_block, bool same) {
  Event e = event_at(w, kind, lane);
  e.other_pc = other_pc & PC_MASK;
  e.address = address;
  e.size = bytes;
  e.space = space;
  e.write = write;
  e.other_write = other_write;
  e.other_block = other_block;
  e.other_thread = thread_of(w, other_who);
  e.same_value = same;
  Machine& m = *w.block->machine;
  m.report(e);
  if (space != SHARED) return;
  const Dim& n = m.grid;
  if (!write) doubt(m, e, w.home->linear + 1, w.stamp(lane), w.pc);
  else if (!other_write)
    doubt(m, e, other_block.x + n.x * (other_block.y + n.y * other_block.z) + 1, other_who,
          e.other_pc);
}

// With a cp.async: either nobody waits for the copy, or no group holds it, so that nobody can.
static void copy_race(Warp& w, int lane, u64 address, u32 bytes, bool write, const Cell& c) {
  const u32 thread = c.pending - 1;
  const Region::Stamp writer = last_writer(*w.block, address >> w.program->shared_shift);
  if (completes_at_mbarrier(w.program->code[c.pending_pc]))
    return race(w, lane, BULK_COPY_RACE, SHARED, address, bytes, write, true, c.pending_pc, thread,
                block_at(*w.block->machine, writer.block - 1), false);
  const Warp& copier = w.block->warps[thread / LANES];
  const bool committed =
      std::any_of(copier.async.begin(), copier.async.end(), [&](const AsyncCopy& copy) {
        const u32 l = thread % LANES;
        return copy.pc == c.pending_pc && copy.mask >> l & 1 &&
               within(address, 1, copy.target[l], copy.bytes) &&
               copy.group[l] < copier.async_group[l];
      });
  race(w, lane, committed ? ASYNC_RACE : COPY_NOT_COMMITTED, SHARED, address, bytes, write, true,
       c.pending_pc, thread, w.block->id, false);
}

bool report_shared_read(Warp& w, int lane, u32 at, u32 bytes, const Cell& c, bool plain,
                        u32& origin) {
  if (c.pending) copy_race(w, lane, at, bytes, false, c);
  if (!c.writer) {
    origin = w.pc;
    return true;
  }
  const Region::Stamp writer = last_writer(*w.block, at >> w.program->shared_shift);
  if (plain && !in_order(w, lane, writer))
    race(w, lane, RACE, SHARED, at, bytes, false, true, c.writer_pc, writer.who,
         block_at(*w.block->machine, writer.block - 1), false);
  if (!(c.writer_pc & UNDEFINED_BIT)) return false;
  origin = c.writer_pc & PC_MASK;
  return true;
}

// A write while an asynchronous operation may still read there.
static void check_async_reads(Warp& w, int lane, u32 address, u32 bytes) {
  for (const AsyncReads& reads : w.block->reading)
    if (reads.touches(address, bytes) &&
        !(reads.wgmma && read_in_order(w, lane, reads.stamp(), BY_WGMMA)))
      race(w, lane, OPERAND_OVERWRITTEN, SHARED, address, bytes, true, false, reads.pc,
           reads.thread, w.block->id, false);
}

// In the memory reserved for cooperative_groups a warp's lanes reuse what all of them have read,
// with nothing but shuffles in between.
static bool in_step(const Warp& w, u32 address, u32 who) {
  const Program& p = *w.program;
  return (who & 1023) / LANES == w.index && within(address, 1, p.arrays[0].start, p.reserved);
}

void shared_write(Warp& w, int lane, u32 address, u32 bytes, bool same, bool atomic,
                  u32 undefined_origin) {
  const u32 cell = 1u << w.program->shared_shift;
  if (__builtin_expect(!w.block->reading.empty(), 0)) check_async_reads(w, lane, address, bytes);
  const u32 pc = (undefined_origin == DEFINED ? w.pc : undefined_origin | UNDEFINED_BIT) |
                 (atomic ? ATOMIC_BIT : 0);
  const bool visits = w.visits();
  if (__builtin_expect(visits || !w.block->peers.empty(), 0))
    check_write_among_peers(w, lane, address, bytes, same, atomic);
  for (u32 at = address; at - address < bytes; at += cell) {
    Cell& c = w.block->cells[at >> w.program->shared_shift];
    if (__builtin_expect(c.pending != 0, 0)) copy_race(w, lane, at, cell, true, c);
    if (__builtin_expect(visits, 0)) continue;
    // The same value written twice is how every thread initialises one flag: harmless.
    if (c.writer && c.writer != BY_PEER && !same && !(atomic && c.writer_pc & ATOMIC_BIT) &&
        !w.ordered(c.writer, lane))
      race(w, lane, RACE, SHARED, at, bytes, true, true, c.writer_pc, c.writer, w.block->id, false);
    const auto before = [&](u32 who, u32 pc) {
      return pc & BY_WGMMA ? w.ended(who) : w.ordered(who, lane) || in_step(w, at, who);
    };
    if (c.reader && !same && !before(c.reader, c.reader_pc))
      race(w, lane, RACE, SHARED, at, bytes, true, false, c.reader_pc, c.reader, w.block->id,
           false);
    else if (c.reader2 && !same && !before(c.reader2, c.reader2_pc))
      race(w, lane, RACE, SHARED, at, bytes, true, false, c.reader2_pc, c.reader2, w.block->id,
           false);
    c.writer = w.stamp(lane);
    c.writer_pc = pc;
  }
  if (__builtin_expect(visits, 0)) keep_write(w, lane, address, bytes, pc);
}

static void global_race(Warp& w, int lane, const Region& r, i64 index, u64 at, u32 bytes,
                        bool write, bool other_write, bool same, const Region::Stamp& other) {
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
  e.other_thread = thread_of(w, other.who);
  w.block->machine->report(e);
}

// Whether an access to global memory is ordered before this warp's now. A block that has executed
// a fence is trusted with the order of its own threads.
static bool settled(const Warp& w, int lane, const Region::Stamp& other) {
  if (other.block == w.block->linear + 1) return w.block->fenced || w.ordered(other.who, lane);
  return w.block->fenced && ordered_elsewhere(w, other.block - 1, other.who);
}

constexpr u32 LINE = 32;  // cells that share a record of reads

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
