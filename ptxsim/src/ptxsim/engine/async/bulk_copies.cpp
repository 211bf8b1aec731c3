#include "bulk_copies.hpp"

#include <algorithm>

#include "../checks/async_proxy.hpp"
#include "../checks/copies_under_way.hpp"
#include "../checks/global_races.hpp"
#include "../checks/shared_races.hpp"
#include "../checks/undefined.hpp"
#include "mbarrier.hpp"

namespace sim {

void report_misaligned(Warp& w, int lane, u64 address, u32 size, u8 space) {
  Event e = event_at(w, MISALIGNED, lane);
  e.address = address;
  e.size = size;
  e.space = space;
  w.block->machine->report(e);
}

namespace {

// The allocation that holds these bytes, or null and a finding.
Region* region_of(Warp& w, int lane, u64 address, u32 bytes, bool write, i64& index) {
  Region* r = w.block->machine->find(address, index);
  if (r && within(address, bytes, r->base, r->size)) return r;
  Event e = event_at(w, OUT_OF_BOUNDS, lane);
  e.address = address;
  e.size = bytes;
  e.space = GLOBAL;
  e.write = write;
  e.region = r ? index : -1;
  e.region_start = r ? r->base : 0;
  e.region_size = r ? r->size : 0;
  w.block->machine->report(e);
  return nullptr;
}

// The shared side: each block that a copy goes to, or comes from.
void count_shared_side(Warp& w, u32 bytes) {
  MemoryCount& c = w.program->memory[w.pc];
  c.requests++;
  c.cost += (bytes + 127) / 128;
  c.bytes += bytes;
}

// Into the shared memory of the block that the warp is in or visits; the barrier is there, too.
void deliver(Warp& w, int lane, const Tile& tile, u32 to, u32 barrier, const Reduction* reduction) {
  Access one;
  one.mask = 1u << lane;
  one.bytes = 8;
  std::fill(one.at, one.at + LANES, barrier);
  drop_misaligned(w, one, SHARED, true);
  if (one.mask) settle_shared(w, one, true);
  MBarrier* const b = one.mask ? barrier_at(w, lane, barrier) : nullptr;
  if (b) check_init(w, lane, *b);
  const Region::Stamp copy{w.home->linear + 1, w.epoch(lane), w.pc};
  count_shared_side(w, tile.bytes());
  if (in_shared(w, lane, to, tile.room(), true)) {
    const u32 shift = w.program->shared_shift;
    for (u32 at = 0; at < tile.bytes(); at += PIECE) {
      const u32 place = tile.place(to, at);
      u8* const there = w.block->shared.data() + place;
      bool undefined = tile.undefined[at / PIECE];
      if (!reduction) std::memcpy(there, tile.data.data() + at, PIECE);
      for (u32 k = 0; reduction && k < PIECE; k += reduction->bytes) {
        undefined |= is_undefined(*w.block, (place + k) >> shift);
        reduction->apply(there + k, tile.data.data() + at + k);
      }
      check_overwritten(w, lane, place, PIECE);
      shared_write(w, lane, place, PIECE, false, reduction, undefined ? w.pc : DEFINED);
      for (u32 cell = place; cell < place + PIECE; cell += 1u << shift) {
        Cell& c = w.block->cells[cell >> shift];
        c.pending = w.index * LANES + u32(lane) + 1;
        c.pending_pc = w.pc;
      }
    }
    if (b) b->landing.push_back({.to = {to, tile.room()}, .copy = copy});
  }
  if (!b) return;
  for (const Extent& from : tile.sources) b->landing.push_back({.from = from, .copy = copy});
  release_copy(w, *b);
  b->transactions -= tile.bytes();
  complete_if_due(w, *b);
}

// A finding where a reduction changes global memory that nobody has written.
void check_reduced(Warp& w, int lane, const Region& r, i64 index, u64 address, u32 bytes) {
  const u32 cell = 1u << w.program->global_shift;
  for (u64 at = address - r.base; !r.all_defined && at < address - r.base + bytes; at += cell) {
    if (r.defined[at >> w.program->global_shift]) continue;
    Event e = event_at(w, UNDEFINED_STORE, lane);
    e.region = index;
    e.region_start = e.address = r.base;
    return w.block->machine->report(e);
  }
}

}  // namespace

void fetch(Warp& w, int lane, u64 address, u32 bytes, Tile& tile, u32 to) {
  i64 index = -1;
  Region* r = region_of(w, lane, address, bytes, false, index);
  if (!r) return;
  std::memcpy(tile.data.data() + to, r->at(address), bytes);
  if ((!r->all_defined || !r->stamps.empty()) &&
      global_read_by_proxy(w, lane, *r, index, address, bytes))
    for (u32 at = to; at < to + bytes; ++at) tile.undefined[at / PIECE] = 1;
  tile.sources.push_back({address, bytes});
  r->copied = true;
  Access part;
  part.mask = 1u << lane;
  for (u32 at = 0; at < bytes; at += PIECE) {
    part.bytes = std::min(PIECE, bytes - at);
    part.at[lane] = address + at;
    remember_reads(w, r, part);
    trace(w, part, READ);
  }
}

void put_back(Warp& w, int lane, u64 address, u32 bytes, const u8* from,
              const Reduction* reduction) {
  i64 index = -1;
  Region* r = region_of(w, lane, address, bytes, true, index);
  if (!r || r->made_up) return;
  u8* const to = r->at(address);
  const bool same = !reduction && !std::memcmp(to, from, bytes);
  if (reduction) check_reduced(w, lane, *r, index, address, bytes);
  if (!reduction) std::memcpy(to, from, bytes);
  for (u32 at = 0; reduction && at < bytes; at += reduction->bytes)
    reduction->apply(to + at, from + at);
  global_write(w, lane, *r, index, address, bytes, same, reduction, true);
  hold_back(w, lane, *r, address, bytes);
  w.block->machine->changes += !same;
  ++w.block->machine->stores;
  Access part;
  part.mask = 1u << lane;
  for (u32 at = 0; at < bytes; at += PIECE) {
    part.bytes = std::min(PIECE, bytes - at);
    part.at[lane] = address + at;
    trace(w, part, reduction ? WRITTEN_STRONGLY : WRITTEN);
  }
}

void count_global_side(Warp& w, u32 bytes, u64 sectors) {
  MemoryCount& c = w.program->source[w.pc];
  c.requests++;
  c.cost += sectors;
  c.bytes += bytes;
}

bool in_shared(Warp& w, int lane, u32 address, u32 bytes, bool write) {
  Access one;
  one.mask = 1u << lane;
  one.bytes = bytes;
  std::fill(one.at, one.at + LANES, address);
  settle_shared(w, one, write);
  return one.mask;
}

void deliver_to(Warp& w, int lane, const Tile& tile, u64 to, u64 barrier, const u32* ranks,
                const Reduction* reduction) {
  const auto at = [&](u64 owner) {
    Block* const block = block_of(w, lane, owner);
    if (!block) return;
    const Visit visit(w, block);
    deliver(w, lane, tile, u32(to & WITHIN_BLOCK), u32(barrier & WITHIN_BLOCK), reduction);
  };
  if (!ranks) return at(to);
  for (u32 rest = *ranks & 0xffff; rest; rest &= rest - 1)
    at(u64(__builtin_ctz(rest) + 1) << RANK_SHIFT);
}

void take(Warp& w, int lane, Tile& tile, u32 from, u32 group) {
  count_shared_side(w, tile.bytes());
  AsyncReader reader(w, lane);
  for (u32 at = 0; at < tile.bytes(); at += PIECE) {
    const u32 place = tile.place(from, at);
    reader.read(place, tile.stored[at / PIECE]);
    std::memcpy(tile.data.data() + at, w.block->shared.data() + place, PIECE);
  }
  reader.keep(group, false);
  if (!reader.undefined()) return;
  Event e = event_at(w, UNDEFINED_STORE, lane);
  e.other_pc = reader.origin();
  e.space = SHARED;
  e.region = -1;
  e.address = from;
  w.block->machine->report(e);
}

}  // namespace sim
