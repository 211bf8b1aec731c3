// The async proxy: how bulk copies and wgmma reach shared memory. What threads write there it sees
// behind a fence.proxy.async; what it reads it may read until its group is waited for.
#include "async_proxy.hpp"

#include <algorithm>

#include "../limits.hpp"
#include "../program/kinds.hpp"
#include "../program/operations.hpp"
#include "release_acquire.hpp"
#include "peers.hpp"
#include "shared_races.hpp"

namespace sim {
namespace {

// What the warp wrote, and has acquired of others' writes, the async proxy sees from now on.
Flow fence_proxy(Warp& w, const Ins&) {
  Clocks& own = w.clocks;
  const bool more = w.uses_lane_clocks();
  for (u32 k = 0; k < 32; ++k)
    own.proxy[k] = std::max({own.proxy[k], own.warps[k], more ? w.lane_clocks.warps[k] : 0});
  own.proxy[w.index] = w.time;
  own.others = with_proxy_fence(own.others, *w.home);
  if (more) w.lane_clocks.others = with_proxy_fence(w.lane_clocks.others, *w.home);
  ++w.time;  // what the lanes do from now on it has not shown; it puts them in no order
  return Flow::next;
}

bool in_warpgroup(const Warp& w, u32 warp) {
  return warp / WARPS_OF_A_GROUP == w.index / WARPS_OF_A_GROUP;
}

}  // namespace

void AsyncReader::read(u32 address, u32 needed) {
  if (w_.block->machine->sampling) return;
  pieces_.push_back(address / 16);
  const auto check = [&](u32 at, u32 bytes, const Cell& c) {
    u32 origin = origin_;
    if (!report_shared_read(w_, lane_, at, bytes, c, true, origin) || at - address >= needed)
      return;
    undefined_ = true;
    origin_ = origin;
  };
  const u32 shift = w_.program->shared_shift, cell = 1u << shift;
  for (u32 at = address; at - address < 16; at += cell) {
    const Cell& c = w_.block->cells[at >> shift];
    if (c.writer.epoch == BY_PEER) {
      const Region::Stamp& writer = w_.block->peers[at >> shift].writer;
      const bool same = writer.block == seen_.block && writer.epoch == seen_.epoch;
      if (same && !c.pending && !(c.writer.pc & UNDEFINED_BIT)) continue;
      check(at, cell, c);
      if (c.pending || !in_order(w_, lane_, writer)) continue;
      const bool there = is_bulk_copy(w_.program->code[writer.pc]) || proxy_sees(w_, writer);
      if (there) seen_ = writer;
      else race(w_, lane_, PROXY_FENCE_MISSING, at, cell, false, writer, true);
      continue;
    }
    const u32 warp = c.writer.epoch.warp(), time = c.writer.epoch.time();
    const bool of_group = in_warpgroup(w_, warp);
    const bool ordered = w_.ordered(c.writer.epoch, lane_);
    if (c.writer.epoch && !ordered && of_group && time <= w_.warpgroup.warps[warp]) {
      race(w_, lane_, WARPS_NOT_ORDERED, at, cell, false, last_writer(*w_.block, at >> shift),
           true);
    } else if (c.pending || !c.writer.epoch || !ordered || c.writer.pc & UNDEFINED_BIT) {
      check(at, cell, c);
      continue;
    }
    const Ins& writer = w_.program->code[c.writer.pc & PC_MASK];
    const u32 fenced = std::max(w_.proxy_time(warp), of_group ? w_.warpgroup.proxy[warp] : 0);
    if (time <= fenced || is_bulk_copy(writer)) continue;
    race(w_, lane_, is_async_copy(writer) ? PROXY_FENCE_AFTER_COPY : PROXY_FENCE_MISSING, at, cell,
         false, last_writer(*w_.block, at >> shift), true);
  }
}

void check_overwritten(Warp& w, int lane, u32 address, u32 bytes) {
  const Program& p = *w.program;
  if (w.block->machine->sampling) return;
  for (u32 at = address; at - address < bytes; at += 1u << p.shared_shift) {
    const Cell& c = w.block->cells[at >> p.shared_shift];
    if (!c.writer.epoch || c.pending) continue;
    const Region::Stamp writer = last_writer(*w.block, at >> p.shared_shift);
    const Ins& by = p.code[writer.pc & PC_MASK];
    if (is_async_copy(by) || completes_at_mbarrier(by)) continue;
    if (!in_order(w, lane, writer) || proxy_sees(w, writer)) continue;
    const bool read = c.reader.epoch && !(c.reader.pc & BEFORE_WRITE);
    race(w, lane, read ? PROXY_FENCE_AFTER_READ : PROXY_FENCE_MISSING, at, 1u << p.shared_shift,
         true, writer, true);
  }
}

void check_init(Warp& w, int lane, MBarrier& b) {
  const u32 home = w.block->linear + 1;
  const Region::Stamp made{home, b.creator, b.creator_pc};
  if (w.block->machine->sampling || !in_order(w, lane, made) || proxy_sees(w, made) ||
      (b.shown && in_order(w, lane, {home, b.shown, b.creator_pc})))
    return;
  b.shown = b.creator;  // it is said once
  Event e = event_at(w, MBARRIER_NOT_FENCED, lane);
  std::swap(e.block, e.other_block);
  std::swap(e.thread, e.other_thread);
  e.block = w.block->id;
  e.thread = thread_at(*w.block->machine, b.creator.thread());
  e.pc = b.creator_pc;
  w.block->machine->report(e);
}

void AsyncReader::keep(u32 group, bool wgmma) {
  if (pieces_.empty()) return;
  const auto [first, last] = std::minmax_element(pieces_.begin(), pieces_.end());
  AsyncReads reads{w_.pc, w_.epoch(lane_), group, wgmma, *first, *last, {}};
  reads.pieces.assign((reads.last - reads.first) / 64 + 1, 0);
  for (u32 piece : pieces_)
    reads.pieces[(piece - reads.first) / 64] |= u64{1} << (piece - reads.first) % 64;
  w_.block->reading.push_back(std::move(reads));
}

void finish_async_reads(Block& b, const AsyncReads& reads, Epoch end) {
  const u32 shift = b.program->shared_shift, cell = 1u << shift;
  const u32 pc = reads.pc | (reads.wgmma ? BY_WGMMA : 0);
  // One warp stands for its warpgroup, whose wgmma end together.
  const u32 together = reads.wgmma ? WARPS_OF_A_GROUP * LANES : 1;  // threads
  for (u32 piece = reads.first; piece <= reads.last; ++piece) {
    if (!(reads.pieces[(piece - reads.first) / 64] >> (piece - reads.first) % 64 & 1)) continue;
    for (u32 at = piece * 16; at < piece * 16 + 16; at += cell) {
      Cell& c = b.cells[at >> shift];
      if (c.reader.epoch.thread() / together != end.thread() / together ||
          (c.reader.pc ^ pc) & BY_WGMMA) {
        c.reader2 = c.reader;
      }
      c.reader = {end, pc};
    }
  }
}

void finish_copy(Block& b, const Region::Stamp& copy) {
  std::erase_if(b.reading, [&](const AsyncReads& reads) {
    const bool over = reads.issued == copy.epoch && reads.pc == copy.pc;
    if (over) finish_async_reads(b, reads, copy.epoch);
    return over;
  });
}

void check_bulk_stores(const Block& b) {
  for (const AsyncReads& reads : b.reading) {
    if (!is_bulk_store(b.program->code[reads.pc])) continue;
    Event e = event_at(b.warps[reads.issued.warp()], STORE_UNDER_WAY, int(reads.issued.lane()));
    e.pc = e.other_pc = reads.pc;
    b.machine->report(e);
  }
}

void add_proxy(Table& t) { add(t, "fence.proxy.async", fence_proxy, ">"); }

}  // namespace sim
