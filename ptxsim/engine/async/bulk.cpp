// Bulk copies: cp.async.bulk and, by tensor maps, cp.async.bulk.tensor.
//
// What a copy brings to shared memory is there at once, but counts as under way until somebody has
// waited for the mbarrier that it completes on. What a copy takes from shared memory counts as
// being read until its thread has waited for its group.
#include <algorithm>
#include <array>

#include "../limits.hpp"
#include "../checks/async_proxy.hpp"
#include "../checks/global_races.hpp"
#include "../checks/shared_races.hpp"
#include "../checks/undefined.hpp"
#include "../memory/cost.hpp"
#include "../program/kinds.hpp"
#include "../program/operations.hpp"
#include "../tensor_map.hpp"
#include "mbarrier.hpp"

namespace sim {
namespace {

constexpr u32 PIECE = 16;  // bytes that are swizzled as one
constexpr u32 TILE_ALIGNMENT = 128;

void report_misaligned(Warp& w, int lane, u64 address, u32 size, u8 space) {
  Event e = event_at(w, MISALIGNED, lane);
  e.address = address;
  e.size = size;
  e.space = space;
  w.block->machine->report(e);
}

// --- global memory

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

// Reads global memory into `to`; whether all of it had been written.
bool fetch(Warp& w, int lane, u64 address, u32 bytes, u8* to) {
  i64 index = -1;
  Region* r = region_of(w, lane, address, bytes, false, index);
  if (!r) return true;
  std::memcpy(to, r->data + (address - r->base), bytes);
  bool undefined = false;
  if (!r->all_defined || !r->stamps.empty())
    undefined = global_read(w, lane, *r, index, address, bytes, true);
  Access part;
  part.mask = 1u << lane;
  for (u32 at = 0; at < bytes; at += PIECE) {
    part.bytes = std::min(PIECE, bytes - at);
    part.at[lane] = address + at;
    remember_reads(w, *r, part);
    trace(w, part, READ);
  }
  return !undefined;
}

void put_back(Warp& w, int lane, u64 address, u32 bytes, const u8* from) {
  i64 index = -1;
  Region* r = region_of(w, lane, address, bytes, true, index);
  if (!r) return;
  u8* const to = r->data + (address - r->base);
  const bool same = !std::memcmp(to, from, bytes);
  std::memcpy(to, from, bytes);
  global_write(w, lane, *r, index, address, bytes, same, false, true);
  w.block->machine->changes += !same;
  Access part;
  part.mask = 1u << lane;
  for (u32 at = 0; at < bytes; at += PIECE) {
    part.bytes = std::min(PIECE, bytes - at);
    part.at[lane] = address + at;
    trace(w, part, WRITTEN);
  }
}

void count(Warp& w, u32 bytes, u64 sectors) {
  MemoryCount& c = w.program->source[w.pc];
  c.requests++;
  c.cost += sectors;
  c.bytes += bytes;
}

// Of 32 bytes, between an address and the end of what begins there.
u64 sectors(u64 address, u64 bytes) { return (address + bytes + 31) / 32 - address / 32; }

// The shared side: each block that a copy goes to, or comes from.
void count_shared_side(Warp& w, u32 bytes) {
  MemoryCount& c = w.program->memory[w.pc];
  c.requests++;
  c.cost += (bytes + 127) / 128;
  c.bytes += bytes;
}

// --- shared memory

// What moves, as it lies in shared memory: a swizzle exchanges its pieces.
struct Tile {
  std::vector<u8> data;
  std::vector<u8> undefined;  // per piece
  u32 swizzle = 0;

  explicit Tile(u32 bytes) : data(bytes), undefined((bytes + PIECE - 1) / PIECE) {}
  u32 bytes() const { return u32(data.size()); }
  // In shared memory: a swizzle moves pieces anywhere in its 32, 64 or 128 bytes.
  u32 room() const {
    const u32 span = PIECE << swizzle;
    return swizzle ? (bytes() + span - 1) / span * span : bytes();
  }
};

bool in_shared(Warp& w, int lane, u32 address, u32 bytes, bool write) {
  Access one;
  one.mask = 1u << lane;
  one.bytes = bytes;
  std::fill(one.at, one.at + LANES, address);
  settle_shared(w, one, write);
  return one.mask;
}

// Into the shared memory of the block that the warp is in or visits; the barrier is there, too.
void deliver(Warp& w, int lane, const Tile& tile, u32 to, u32 barrier) {
  Access one;
  one.mask = 1u << lane;
  one.bytes = 8;
  std::fill(one.at, one.at + LANES, barrier);
  drop_misaligned(w, one, SHARED, true);
  if (one.mask) settle_shared(w, one, true);
  MBarrier* const b = one.mask ? barrier_at(w, lane, barrier) : nullptr;
  count_shared_side(w, tile.bytes());
  if (in_shared(w, lane, to, tile.room(), true)) {
    const u32 shift = w.program->shared_shift;
    for (u32 at = 0; at < tile.bytes(); at += PIECE) {
      const u32 place = swizzled(to + at, tile.swizzle);
      std::memcpy(w.block->shared.data() + place, tile.data.data() + at, PIECE);
      shared_write(w, lane, place, PIECE, false, false,
                   tile.undefined[at / PIECE] ? w.pc : DEFINED);
      for (u32 cell = place; cell < place + PIECE; cell += 1u << shift) {
        Cell& c = w.block->cells[cell >> shift];
        c.pending = w.index * LANES + u32(lane) + 1;
        c.pending_pc = w.pc;
      }
    }
    if (b) b->landing.push_back({to, tile.room()});
  }
  if (!b) return;
  publish_copy(w, *b);
  b->transactions -= tile.bytes();
  complete_if_due(w, *b);
}

// To one block, or to every block of the cluster that `ranks` names, at the same place in each.
void deliver_to(Warp& w, int lane, const Tile& tile, u64 to, u64 barrier, const u32* ranks) {
  const auto at = [&](u64 owner) {
    Block* const block = block_of(w, lane, owner);
    if (!block) return;
    const Visit visit(w, block);
    deliver(w, lane, tile, u32(to & WITHIN_BLOCK), u32(barrier & WITHIN_BLOCK));
  };
  if (!ranks) return at(to);
  for (u32 rest = *ranks & 0xffff; rest; rest &= rest - 1)
    at(u64(__builtin_ctz(rest) + 1) << RANK_SHIFT);
}

// Takes the tile from the warp's own shared memory.
void take(Warp& w, int lane, Tile& tile, u32 from) {
  count_shared_side(w, tile.bytes());
  AsyncReader reader(w, lane);
  for (u32 at = 0; at < tile.bytes(); at += PIECE) {
    const u32 place = swizzled(from + at, tile.swizzle);
    reader.read(place);
    std::memcpy(tile.data.data() + at, w.block->shared.data() + place, PIECE);
  }
  reader.keep(w.bulk_group[lane], false);
  if (!reader.undefined()) return;
  Event e = event_at(w, UNDEFINED_STORE, lane);
  e.other_pc = reader.origin();
  e.space = SHARED;
  e.region = -1;
  e.address = from;
  w.block->machine->report(e);
}

// --- cp.async.bulk

// source, base: of what moves; barrier: of a copy to shared memory; ranks: of a multicast
struct BulkOperands {
  i32 source, bytes, barrier, source_offset, base, base_bytes, barrier_offset, ranks;
};

u64 generic_to_shared(u64 address) { return address & OFFSET_MASK; }

bool whole_pieces(Warp& w, int lane, u64 global, u64 shared, u32 bytes) {
  if (!((global | shared | bytes) & (PIECE - 1))) return true;
  const bool of_global = global & (PIECE - 1);
  report_misaligned(w, lane, of_global ? global : shared, PIECE, of_global ? GLOBAL : SHARED);
  return false;
}

// The base is of shared memory, which is written; the barrier lies in the same block.
Flow copy_in(Warp& w, const Ins& i) {
  const auto o = operands<BulkOperands>(i);
  Access target;
  resolve_addresses(w, i, target);
  for (u32 rest = w.exec; rest; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    const u64 to = generic_to_shared(target.at[l]);
    const u64 from = lanes<u64>(w, o.source)[l] + i64(o.source_offset);
    const u32 bytes = lanes<u32>(w, o.bytes)[l];
    if (!whole_pieces(w, l, from, to, bytes) || bytes > MAX_SHARED_BYTES) continue;
    Tile tile(bytes);
    if (!fetch(w, l, from, bytes, tile.data.data()))
      std::fill(tile.undefined.begin(), tile.undefined.end(), 1);
    count(w, bytes, sectors(from, bytes));
    const u64 barrier = lanes<u32>(w, o.barrier)[l] + u32(o.barrier_offset);
    deliver_to(w, l, tile, to, barrier, o.ranks < 0 ? nullptr : lanes<u32>(w, o.ranks) + l);
  }
  w.tick();
  return Flow::next;
}

// From the block's own shared memory to that of another: source is a shared address.
Flow copy_across(Warp& w, const Ins& i) {
  const auto o = operands<BulkOperands>(i);
  Access target;
  resolve_addresses(w, i, target);
  for (u32 rest = w.exec; rest; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    const u64 to = generic_to_shared(target.at[l]);
    const u64 from = generic_to_shared(lanes<u64>(w, o.source)[l] + i64(o.source_offset));
    const u32 bytes = lanes<u32>(w, o.bytes)[l];
    if (!whole_pieces(w, l, 0, from | to, bytes)) continue;
    if (!in_shared(w, l, u32(from & WITHIN_BLOCK), bytes, false)) continue;
    Tile tile(bytes);
    take(w, l, tile, u32(from & WITHIN_BLOCK));
    deliver_to(w, l, tile, to, lanes<u32>(w, o.barrier)[l] + u32(o.barrier_offset), nullptr);
  }
  w.tick();
  return Flow::next;
}

// The base is of shared memory, which is read; source is where the bytes go in global memory.
Flow copy_out(Warp& w, const Ins& i) {
  const auto o = operands<BulkOperands>(i);
  Access from;
  resolve_addresses(w, i, from);
  for (u32 rest = w.exec; rest; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    const u64 place = generic_to_shared(from.at[l]);
    const u64 to = lanes<u64>(w, o.source)[l] + i64(o.source_offset);
    const u32 bytes = lanes<u32>(w, o.bytes)[l];
    if (!whole_pieces(w, l, to, place, bytes) || !in_shared(w, l, u32(place), bytes, false))
      continue;
    Tile tile(bytes);
    take(w, l, tile, u32(place));
    put_back(w, l, to, bytes, tile.data.data());
    count(w, bytes, sectors(to, bytes));
  }
  return Flow::next;
}

// --- groups of copies to global memory

Flow commit(Warp& w, const Ins&) {
  for (u32 rest = w.exec; rest; rest &= rest - 1) w.bulk_group[__builtin_ctz(rest)]++;
  return Flow::next;
}

Flow wait_group(Warp& w, const Ins& i) {
  auto& reading = w.block->reading;
  const auto over = [&](const AsyncReads& reads) {
    const u32 thread = reads.thread & 1023, lane = thread % LANES;
    if (reads.wgmma || thread / LANES != w.index || !(w.exec >> lane & 1)) return false;
    if (i64(reads.group) >= i64(w.bulk_group[lane]) - i.groups()) return false;
    finish_async_reads(w, reads);
    return true;
  };
  reading.erase(std::remove_if(reading.begin(), reading.end(), over), reading.end());
  w.tick();
  return Flow::next;
}

// --- cp.async.bulk.tensor

constexpr u64 PARAM_ADDRESSES = 3;  // top byte of a generic address of a parameter

bool read_map(Warp& w, int lane, u64 address, u32 rank, TensorMap& map) {
  Machine& m = *w.block->machine;
  const u8* from = nullptr;
  if (address % 64) {
    report_misaligned(w, lane, address, 64, GENERIC);
    return false;
  }
  if (address >> 56 == PARAM_ADDRESSES) {
    const u64 offset = address & OFFSET_MASK;
    if (within(offset, TENSOR_MAP_BYTES, m.params.size())) from = m.params.data() + offset;
  } else {
    i64 index = -1;
    Region* r = m.find(address, index);
    if (r && within(address, TENSOR_MAP_BYTES, r->base, r->size))
      from = r->data + (address - r->base);
  }
  if (from) std::memcpy(static_cast<void*>(&map), from, sizeof map);
  if (from && map.sound() && map.rank == rank) return true;
  Event e = event_at(w, BAD_TENSOR_MAP, lane);
  e.address = address;
  e.expected = rank;
  e.arrived = from && map.sound() ? map.rank : 0;
  m.report(e);
  return false;
}

// Calls `f(address, offset, first, last)` for every row of the box: where its first element would
// lie in global memory, where in the tile, and which of its elements lie in the tensor.
template <class F> void each_row(const TensorMap& map, const i32* at, F f) {
  const u32 row = map.count(0) * map.element();
  u32 rows = 1;
  for (u32 d = 1; d < map.rank; ++d) rows *= map.count(d);
  const i64 start = at[0], extent = i64(map.extents[0]);
  const i64 first = std::clamp<i64>(-start, 0, map.count(0));
  const i64 last = std::clamp<i64>(extent - start, first, map.count(0));
  for (u32 r = 0; r < rows; ++r) {
    u64 address = map.address + u64(start) * map.element();
    bool inside = true;
    u32 left = r;
    for (u32 d = 1; d < map.rank; ++d) {
      const i64 place = i64(at[d]) + i64(left % map.count(d)) * map.steps[d];
      left /= map.count(d);
      inside = inside && place >= 0 && place < i64(map.extents[d]);
      address += u64(place) * map.strides[d];
    }
    f(address, r * row, u32(first), inside ? u32(last) : u32(first));
  }
}

// What lies outside the tensor.
void fill_outside(const TensorMap& map, Tile& tile) {
  if (!map.fills_nan) return;
  static constexpr u8 HALF[] = {0xff, 0x7f}, FLOAT[] = {0xff, 0xff, 0xff, 0x7f};
  static constexpr u8 DOUBLE[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
  const u32 size = map.element();
  const u8* const value = size == 2 ? HALF : size == 4 ? FLOAT : DOUBLE;
  for (u32 at = 0; at < tile.bytes(); ++at) tile.data[at] = value[at % size];
}

// map: its generic address; ranks: of a multicast; then the coordinates
struct TensorOperands { i32 map, shared, barrier, ranks, at[MOST_DIMENSIONS]; };

TensorOperands tensor_operands(const Ins& i) {
  TensorOperands o;
  std::memcpy(&o, i.x + i.pooled(), sizeof o);
  return o;
}

// Sectors of those of the box's rows, or parts of them, that lie in the tensor.
u64 box_sectors(const TensorMap& map, const i32* at) {
  u64 sum = 0;
  each_row(map, at, [&](u64 address, u32, u32 first, u32 last) {
    const u64 element = map.element();
    if (first < last) sum += sectors(address + first * element, (last - first) * element);
  });
  return sum;
}

// Calls `f(lane, map, coordinates, tile, shared address)`. write: to shared memory.
template <class F> void each_tile(Warp& w, const Ins& i, bool write, F f) {
  const auto o = tensor_operands(i);
  check_defined(w, o.shared, UNDEFINED_ADDRESS, false);
  for (u32 rest = w.exec; rest; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    TensorMap map;
    if (!read_map(w, l, lanes<u64>(w, o.map)[l], i.vec, map)) continue;
    i32 at[MOST_DIMENSIONS] = {};
    for (u32 d = 0; d < i.vec; ++d) {
      check_defined(w, o.at[d], UNDEFINED_ADDRESS, false);
      at[d] = lanes<i32>(w, o.at[d])[l];
    }
    const u32 shared = lanes<u32>(w, o.shared)[l];
    if (shared % TILE_ALIGNMENT) {
      report_misaligned(w, l, shared & WITHIN_BLOCK, TILE_ALIGNMENT, SHARED);
      continue;
    }
    if (map.box_bytes() > MAX_SHARED_BYTES) {  // a finding; the size may exceed its 32 bits
      in_shared(w, l, shared & WITHIN_BLOCK, MAX_SHARED_BYTES + 1, write);
      continue;
    }
    Tile tile(u32(map.box_bytes()));
    tile.swizzle = map.swizzle;
    count(w, tile.bytes(), box_sectors(map, at));
    f(l, map, at, tile, shared);
  }
  w.tick();
}

Flow load_tile(Warp& w, const Ins& i) {
  const auto o = tensor_operands(i);
  each_tile(w, i, true, [&](int l, const TensorMap& map, const i32* at, Tile& tile, u32 shared) {
    fill_outside(map, tile);
    each_row(map, at, [&](u64 address, u32 offset, u32 first, u32 last) {
      if (first == last) return;
      const u32 from = first * map.element(), bytes = (last - first) * map.element();
      if (!fetch(w, l, address + from, bytes, tile.data.data() + offset + from))
        for (u32 byte = offset + from; byte < offset + from + bytes; ++byte)
          tile.undefined[byte / PIECE] = 1;
    });
    deliver_to(w, l, tile, shared, lanes<u32>(w, o.barrier)[l],
               o.ranks < 0 ? nullptr : lanes<u32>(w, o.ranks) + l);
  });
  return Flow::next;
}

Flow store_tile(Warp& w, const Ins& i) {
  each_tile(w, i, false, [&](int l, const TensorMap& map, const i32* at, Tile& tile, u32 shared) {
    if (!in_shared(w, l, shared, tile.room(), false)) return;
    take(w, l, tile, shared);
    each_row(map, at, [&](u64 address, u32 offset, u32 first, u32 last) {
      if (first == last) return;
      const u32 from = first * map.element();
      put_back(w, l, address + from, (last - first) * map.element(),
               tile.data.data() + offset + from);
    });
  });
  return Flow::next;
}

bool is_tensor_copy(const Program&, const Ins& i) {
  if (!i.vec || i.vec > MOST_DIMENSIONS) return false;
  const auto o = tensor_operands(i);
  if (o.shared < 0 || (i.run == load_tile) != (o.barrier >= 0)) return false;
  return std::all_of(o.at, o.at + i.vec, [](i32 slot) { return slot >= 0; });
}

}  // namespace

bool is_bulk_copy(const Ins& i) {
  return i.run == copy_in || i.run == copy_across || i.run == load_tile;
}

void add_bulk(Table& t) {
  t.push_back({"cp.async.bulk", copy_in, ">wnniaiN"});
  t.push_back({"cp.async.bulk.across", copy_across, ">wnniaiN"});
  t.push_back({"cp.async.bulk.out", copy_out, ">wn-ia"});
  t.push_back({"cp.async.bulk.commit_group", commit, ">"});
  t.push_back({"cp.async.bulk.wait_group", wait_group, ">",
               [](const Program&, const Ins& i) { return i.groups() >= 0 && i.groups() <= ALL; }});
  t.push_back({"cp.async.bulk.tensor", load_tile, "*>wnNNNNNNN", is_tensor_copy});
  t.push_back({"cp.async.bulk.tensor.out", store_tile, "*>wnNNNNNNN", is_tensor_copy});
}

}  // namespace sim
