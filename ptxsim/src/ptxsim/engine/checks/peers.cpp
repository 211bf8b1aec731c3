
#include "peers.hpp"

#include <algorithm>

#include "release_acquire.hpp"
#include "shared_races.hpp"

namespace sim {
namespace {

Region::Stamp stamp_of(const Warp& w, int lane) {
  return {w.home->linear + 1, w.epoch(lane), w.pc};
}

bool same_thread(const Region::Stamp& a, const Region::Stamp& b) {
  return a.block == b.block && a.epoch.thread() == b.epoch.thread();
}

PeerCell& peer_cell(Block& b, u32 cell) {
  if (b.peers.empty()) b.peers.resize(b.cells.size());
  return b.peers[cell];
}

}  // namespace

bool in_order(const Warp& w, int lane, const Region::Stamp& access) {
  const u32 block = access.block - 1;
  return block == w.home->linear ? w.ordered(access.epoch, lane)
                                 : ordered_elsewhere(w, lane, access);
}

bool read_in_order(const Warp& w, int lane, Epoch read, u32 pc) {
  if (!(pc & BY_WGMMA)) return in_order(w, lane, {w.block->linear + 1, read, pc});
  return w.visits() ? wgmma_ended_elsewhere(w, *w.block, read) : w.ended(read);
}

Region::Stamp last_writer(const Block& b, u32 cell) {
  const Cell& c = b.cells[cell];
  if (c.writer.epoch == BY_PEER) return b.peers[cell].writer;
  return {b.linear + 1, c.writer.epoch, c.writer.pc};
}

// --- start and end

void visit(Warp& w, int lane, Block& to) {
  if (to.machine->sampling) return;
  const Region::Stamp now = stamp_of(w, lane);
  const auto same_warp = [&](const Region::Stamp& other) {
    return other.block == now.block && other.epoch.warp() == w.index;
  };
  const auto before = std::find_if(to.visitors.begin(), to.visitors.end(), same_warp);
  if (before == to.visitors.end()) to.visitors.push_back(now);
  else *before = now;
  if (after_start(w, to.linear)) return;
  Event e = event_at(w, PEER_NOT_STARTED, lane);
  e.space = SHARED;
  e.other_block = to.id;
  to.machine->report(e);
}

bool block_has_started(const Warp& w) { return !w.visits() || after_start(w, w.block->linear); }

void check_visitors(const Block& b) {
  for (const Region::Stamp& visitor : b.visitors) {
    if (ordered_before_exit(b, visitor)) continue;
    Event e{};
    e.kind = PEER_EXITED;
    e.pc = e.other_pc = visitor.pc;
    e.count = 1;
    e.space = SHARED;
    e.region = -1;
    e.block = block_at(*b.machine, visitor.block - 1);
    e.thread = thread_at(*b.machine, visitor.epoch.thread());
    e.other_block = b.id;
    b.machine->report(e);
  }
}

// --- races

void check_write_among_peers(Warp& w, int lane, u32 address, u32 bytes, bool same, bool atomic) {
  if (same) return;
  Block& b = *w.block;
  const u32 shift = w.program->shared_shift, home = b.linear + 1;
  for (u32 at = address; at - address < bytes; at += 1u << shift) {
    const Cell& c = b.cells[at >> shift];
    const PeerCell& p = peer_cell(b, at >> shift);
    const auto check = [&](const Region::Stamp& other, bool write) {
      // What the block did to its own shared memory, shared_write() looks at.
      if (!other.block || !other.epoch || (!w.visits() && other.block == home)) return true;
      if (other.block == home && !write ? read_in_order(w, lane, other.epoch, other.pc)
                                        : in_order(w, lane, other))
        return true;
      race(w, lane, RACE, at, bytes, true, other, write);
      return false;
    };
    if (c.writer.epoch && !(atomic && c.writer.pc & ATOMIC_BIT)) {
      Region::Stamp writer = last_writer(b, at >> shift);
      writer.pc = c.writer.pc;
      check(writer, true);
    }
    check({home, c.reader.epoch, c.reader.pc}, false) &&
        check({home, c.reader2.epoch, c.reader2.pc}, false);
    check(p.reader, false) && check(p.reader2, false);
  }
}

void keep_write(Warp& w, int lane, u32 address, u32 bytes, u32 pc) {
  const u32 shift = w.program->shared_shift;
  for (u32 at = address; at - address < bytes; at += 1u << shift) {
    Cell& c = w.block->cells[at >> shift];
    c.writer = {BY_PEER, pc};
    c.reader.epoch = c.reader2.epoch = {};  // whoever comes after this write comes after them, too
    peer_cell(*w.block, at >> shift) = {.writer = stamp_of(w, lane), .reader = {}, .reader2 = {}};
  }
}

bool read_of_peer(Warp& w, int lane, u32 address, u32 bytes, bool plain, u32& origin) {
  const u32 shift = w.program->shared_shift;
  const Region::Stamp me = stamp_of(w, lane);
  bool undefined = false;
  for (u32 at = address; at - address < bytes; at += 1u << shift) {
    undefined |= report_shared_read(w, lane, at, bytes, w.block->cells[at >> shift], plain, origin);
    if (!plain) continue;
    PeerCell& p = peer_cell(*w.block, at >> shift);
    if (!same_thread(p.reader, me)) p.reader2 = p.reader;
    p.reader = me;
  }
  return undefined;
}

}  // namespace sim
