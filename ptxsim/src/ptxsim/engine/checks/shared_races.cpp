#include "shared_races.hpp"

#include <algorithm>

#include "../program/kinds.hpp"
#include "conflicts.hpp"
#include "suspect_reads.hpp"
#include "peers.hpp"
#include "undefined.hpp"

namespace sim {

void race(Warp& w, int lane, EventKind kind, u32 address, u32 bytes, bool write,
          const Region::Stamp& other, bool other_write, bool first) {
  Machine& m = *w.block->machine;
  Event e = event_at(w, kind, lane);
  e.other_pc = other.pc & PC_MASK;
  e.address = address;
  e.size = bytes;
  e.space = SHARED;
  e.write = write;
  e.other_write = other_write;
  e.other_block = block_at(m, other.block - 1);
  e.other_thread = thread_at(m, other.epoch.thread());
  kind == RACE ? conflict(w, e, other, shared_place(*w.block, address), first) : m.report(e);
  if (!write) suspect(m, e, w.home->linear + 1, w.epoch(lane), w.pc);
  else if (!other_write) suspect(m, e, other.block, other.epoch, e.other_pc);
}

namespace {

// With a cp.async: either nobody waits for the copy, or no group holds it, so that nobody can.
void copy_race(Warp& w, int lane, u64 address, u32 bytes, bool write, const Cell& c) {
  const u32 thread = c.pending - 1;
  const Region::Stamp writer = last_writer(*w.block, address >> w.program->shared_shift);
  if (completes_at_mbarrier(w.program->code[c.pending_pc]))
    return race(w, lane, BULK_COPY_RACE, address, bytes, write,
                {writer.block, {thread, 0}, c.pending_pc}, true);
  const Warp& copier = w.block->warps[thread / LANES];
  const bool committed =
      std::any_of(copier.async.begin(), copier.async.end(), [&](const AsyncCopy& copy) {
        const u32 l = thread % LANES;
        return copy.pc == c.pending_pc && copy.mask >> l & 1 &&
               within(address, 1, copy.target[l], copy.bytes) &&
               copy.group[l] < copier.async_group[l];
      });
  race(w, lane, committed ? ASYNC_RACE : COPY_NOT_COMMITTED, address, bytes, write,
       {w.block->linear + 1, {thread, 0}, c.pending_pc}, true);
}

// A write while an asynchronous operation may still read there.
void check_async_reads(Warp& w, int lane, u32 address, u32 bytes) {
  for (const AsyncReads& reads : w.block->reading)
    if (reads.touches(address, bytes) &&
        !(reads.wgmma && read_in_order(w, lane, reads.by_wgmma(), BY_WGMMA)))
      race(w, lane, OPERAND_OVERWRITTEN, address, bytes, true,
           {w.block->linear + 1, reads.issued, reads.pc}, false);
}

void destroy_mbarriers(Block& b, u32 address, u32 bytes) {
  auto at = b.mbarriers.lower_bound(address < 8 ? 0 : address - 7);
  for (; at != b.mbarriers.end() && at->first < address + bytes; ++at) at->second.destroyed = true;
}

// In the memory reserved for cooperative_groups a warp's lanes reuse what all of them have read,
// with nothing but shuffles in between.
bool in_step(const Warp& w, u32 address, Epoch read) {
  const Program& p = *w.program;
  return read.warp() == w.index && within(address, 1, p.arrays[0].start, p.reserved);
}

// An atomic operation leaves the plain write below it in sight: the next atomic operation must be
// in order with that, too.
void keep_plain_write(Warp& w, int lane, u32 address, u32 bytes) {
  Block& b = *w.block;
  const u32 cell = address >> w.program->shared_shift;
  const Cell& c = b.cells[cell];
  if (!c.writer.epoch) return;
  if (c.writer.pc & ATOMIC_BIT) {
    const Region::Stamp below = b.hidden.empty() ? Region::Stamp{} : b.hidden[cell];
    if (below.block && !in_order(w, lane, below))
      race(w, lane, RACE, address, bytes, true, below, true);
    return;
  }
  if (b.hidden.empty()) b.hidden.resize(b.cells.size());
  b.hidden[cell] = last_writer(b, cell);
}

}  // namespace

bool report_shared_read(Warp& w, int lane, u32 at, u32 bytes, const Cell& c, bool plain,
                        u32& origin) {
  if (c.pending) copy_race(w, lane, at, bytes, false, c);
  if (!c.writer.epoch) {
    origin = w.pc;
    found_unwritten(w, shared_place(*w.block, at));
    return true;
  }
  const Region::Stamp writer = last_writer(*w.block, at >> w.program->shared_shift);
  if (plain && !in_order(w, lane, writer))
    race(w, lane, RACE, at, bytes, false, {writer.block, writer.epoch, c.writer.pc}, true);
  if (!(c.writer.pc & UNDEFINED_BIT)) return false;
  origin = c.writer.pc & PC_MASK;
  return true;
}

void shared_write(Warp& w, int lane, u32 address, u32 bytes, bool same, bool atomic,
                  u32 undefined_origin) {
  const u32 cell = 1u << w.program->shared_shift, home = w.block->linear + 1;
  if (__builtin_expect(!w.block->mbarriers.empty(), 0)) destroy_mbarriers(*w.block, address, bytes);
  if (__builtin_expect(!w.block->reading.empty(), 0)) check_async_reads(w, lane, address, bytes);
  const u32 pc = (undefined_origin == DEFINED ? w.pc : undefined_origin | UNDEFINED_BIT) |
                 (atomic ? ATOMIC_BIT : 0);
  if (__builtin_expect(!w.block->externs.empty(), 0))
    extern_write(w, lane, address, bytes, same, atomic);
  const bool visits = w.visits();
  if (__builtin_expect(visits || !w.block->peers.empty(), 0))
    check_write_among_peers(w, lane, address, bytes, same, atomic);
  for (u32 at = address; at - address < bytes; at += cell) {
    Cell& c = w.block->cells[at >> w.program->shared_shift];
    if (__builtin_expect(c.pending != 0, 0) && !(atomic && c.writer.pc & ATOMIC_BIT))
      copy_race(w, lane, at, cell, true, c);
    if (atomic) keep_plain_write(w, lane, at, bytes);
    if (__builtin_expect(visits, 0)) continue;
    // The same value written twice is how every thread initialises one flag: harmless.
    if (c.writer.epoch && c.writer.epoch != BY_PEER && !same &&
        !(atomic && c.writer.pc & ATOMIC_BIT) && !w.ordered(c.writer.epoch, lane) &&
        !w.has_observed(shared_place(*w.block, at), {home, c.writer.epoch, c.writer.pc}, lane))
      race(w, lane, RACE, at, bytes, true, {home, c.writer.epoch, c.writer.pc}, true,
           c.writer.pc & ATOMIC_BIT);
    const auto before = [&](Epoch read, u32 pc) {
      return pc & BY_WGMMA ? w.ended(read) : w.ordered(read, lane) || in_step(w, at, read);
    };
    if (c.reader.epoch && !same && !before(c.reader.epoch, c.reader.pc))
      race(w, lane, RACE, at, bytes, true, {home, c.reader.epoch, c.reader.pc}, false,
           !c.writer.epoch);
    else if (c.reader2.epoch && !same && !before(c.reader2.epoch, c.reader2.pc))
      race(w, lane, RACE, at, bytes, true, {home, c.reader2.epoch, c.reader2.pc}, false,
           !c.writer.epoch);
    c.writer = {w.epoch(lane), pc};
    c.reader.pc |= BEFORE_WRITE;
  }
  if (__builtin_expect(visits, 0)) keep_write(w, lane, address, bytes, pc);
}

}  // namespace sim
