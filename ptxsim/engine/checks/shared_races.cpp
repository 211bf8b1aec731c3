#include "shared_races.hpp"

#include <algorithm>

#include "../program/kinds.hpp"
#include "doubts.hpp"
#include "peers.hpp"
#include "undefined.hpp"

namespace sim {

void race(Warp& w, int lane, EventKind kind, u8 space, u64 address, u32 bytes, bool write,
          bool other_write, u32 other_pc, u32 other_who, const Dim& other_block, bool same) {
  Machine& m = *w.block->machine;
  Event e = event_at(w, kind, lane);
  e.other_pc = other_pc & PC_MASK;
  e.address = address;
  e.size = bytes;
  e.space = space;
  e.write = write;
  e.other_write = other_write;
  e.other_block = other_block;
  e.other_thread = thread_at(m, other_who & 1023);
  e.same_value = same;
  m.report(e);
  if (space != SHARED) return;
  const Dim& n = m.grid;
  if (!write) doubt(m, e, w.home->linear + 1, w.stamp(lane), w.pc);
  else if (!other_write)
    doubt(m, e, other_block.x + n.x * (other_block.y + n.y * other_block.z) + 1, other_who,
          e.other_pc);
}

namespace {

// With a cp.async: either nobody waits for the copy, or no group holds it, so that nobody can.
void copy_race(Warp& w, int lane, u64 address, u32 bytes, bool write, const Cell& c) {
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

// A write while an asynchronous operation may still read there.
void check_async_reads(Warp& w, int lane, u32 address, u32 bytes) {
  for (const AsyncReads& reads : w.block->reading)
    if (reads.touches(address, bytes) &&
        !(reads.wgmma && read_in_order(w, lane, reads.stamp(), BY_WGMMA)))
      race(w, lane, OPERAND_OVERWRITTEN, SHARED, address, bytes, true, false, reads.pc,
           reads.thread, w.block->id, false);
}

// In the memory reserved for cooperative_groups a warp's lanes reuse what all of them have read,
// with nothing but shuffles in between.
bool in_step(const Warp& w, u32 address, u32 who) {
  const Program& p = *w.program;
  return (who & 1023) / LANES == w.index && within(address, 1, p.arrays[0].start, p.reserved);
}

}  // namespace

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

}  // namespace sim
