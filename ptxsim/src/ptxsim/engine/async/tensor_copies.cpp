// cp.async.bulk.tensor.
#include <algorithm>

#include "../limits.hpp"
#include "../checks/undefined.hpp"
#include "../program/operations.hpp"
#include "../memory/cluster_addresses.hpp"
#include "bulk_copies.hpp"

namespace sim {
namespace {

constexpr u32 TILE_ALIGNMENT = 128;

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
    if (r && within(address, TENSOR_MAP_BYTES, r->base, r->size)) from = r->at(address);
  }
  if (from) std::memcpy(static_cast<void*>(&map), from, sizeof map);
  if (from && map.sound() && map.rank == rank) return true;
  Event e = event_at(w, BAD_TENSOR_MAP, lane);
  e.address = address;
  set_details(e, {from && map.sound() ? map.rank : 0, rank});
  m.report(e);
  return false;
}

// GPUs take only tiles that begin at a multiple of 16 bytes of the innermost dimension, and store
// only what does not begin before its tensor. The copy goes on all the same: whoever waits for it
// would be a second finding.
void check_start(Warp& w, int lane, const TensorMap& map, const i32* at, bool stored) {
  Event e = event_at(w, TILE_MISALIGNED, lane);
  set_details(e, {at[0], map.element()});
  if (i64(at[0]) * map.element() % PIECE) return w.block->machine->report(e);
  const i32* const before = std::find_if(at, at + map.rank, [](i32 first) { return first < 0; });
  if (!stored || before == at + map.rank) return;
  e.kind = TILE_BEFORE_TENSOR;
  set_details(e, {*before, before - at});
  w.block->machine->report(e);
}

// Calls `f(address, offset, first, last)` for every row of the box: where its first element would
// lie in global memory, where in the tile, and which of its elements lie in the tensor.
template <class F> void each_row(const TensorMap& map, const i32* at, F f) {
  const u32 row = map.row_bytes();
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
  static constexpr u8 NAN_OF_16_BITS[] = {0xf7, 0x7f};  // larger ones consist of these
  for (u32 at = 0; at < tile.bytes(); ++at) tile.data[at] = NAN_OF_16_BITS[at % 2];
}

// To the nearest float of 10 bits, ties to even.
u32 as_tf32(u32 bits) {
  constexpr u32 INFINITE = 0x7f800000, NOT_A_NUMBER = 0x7fffe000, LOST = 0x1fff;
  if ((bits & 0x7fffffff) > INFINITE) return NOT_A_NUMBER;
  return (bits + LOST / 2 + (bits >> 13 & 1)) & ~LOST;
}

void round_to_tf32(u8* data, u32 bytes) {
  for (u32 at = 0; at < bytes; at += 4) {
    u32 bits;
    std::memcpy(&bits, data + at, 4);
    bits = as_tf32(bits);
    std::memcpy(data + at, &bits, 4);
  }
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
    check_start(w, l, map, at, !write);
    const u32 shared = lanes<u32>(w, o.shared)[l];
    if (shared % TILE_ALIGNMENT) {
      report_misaligned(w, l, shared & WITHIN_BLOCK, TILE_ALIGNMENT, SHARED);
      continue;
    }
    if (map.box_bytes() > MAX_SHARED_BYTES) {  // a finding; the size may exceed its 32 bits
      in_shared(w, l, shared & WITHIN_BLOCK, MAX_SHARED_BYTES + 1, write);
      continue;
    }
    Tile tile(u32(map.box_bytes()), map.row_bytes(), map.pitch(), map.swizzle);
    count_global_side(w, tile.bytes(), box_sectors(map, at));
    f(l, map, at, tile, shared);
  }
  w.release();
}

Flow load_tile(Warp& w, const Ins& i) {
  const auto o = tensor_operands(i);
  each_tile(w, i, true, [&](int l, const TensorMap& map, const i32* at, Tile& tile, u32 shared) {
    fill_outside(map, tile);
    each_row(map, at, [&](u64 address, u32 offset, u32 first, u32 last) {
      if (first == last) return;
      const u32 from = first * map.element(), bytes = (last - first) * map.element();
      fetch(w, l, address + from, bytes, tile, offset + from);
      if (is_tf32(map.type)) round_to_tf32(tile.data.data() + offset + from, bytes);
    });
    deliver_to(w, l, tile, shared, lanes<u32>(w, o.barrier)[l],
               o.ranks < 0 ? nullptr : lanes<u32>(w, o.ranks) + l);
  });
  return Flow::next;
}

Flow store_tile(Warp& w, const Ins& i) {
  each_tile(w, i, false, [&](int l, const TensorMap& map, const i32* at, Tile& tile, u32 shared) {
    if (!in_shared(w, l, shared, tile.room(), false)) return;
    each_row(map, at, [&](u64, u32 offset, u32 first, u32 last) {
      for (u32 byte = 0; byte < map.row_bytes(); byte += PIECE) {
        const i64 inside = i64(last) * map.element() - byte;
        tile.stored[(offset + byte) / PIECE] =
            first == last ? 0 : u8(std::clamp<i64>(inside, 0, PIECE));
      }
    });
    take(w, l, tile, shared, w.bulk_group[l]);
    each_row(map, at, [&](u64 address, u32 offset, u32 first, u32 last) {
      if (first == last) return;
      const u32 from = first * map.element();
      // GPUs store the last 16 bytes whole, even if the tensor ends within them. A tile that begins
      // elsewhere than at a multiple of 16 bytes, a finding, still has no more than its row.
      const u32 pieces = ((last - first) * map.element() + PIECE - 1) / PIECE;
      const u32 bytes = std::min(pieces * PIECE, map.row_bytes() - from);
      put_back(w, l, address + from, bytes, tile.data.data() + offset + from);
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

bool is_load_tile(const Ins& i) { return i.run == load_tile; }
bool is_store_tile(const Ins& i) { return i.run == store_tile; }

void add_tensor_copies(Table& t) {
  add(t, "cp.async.bulk.tensor", load_tile, "*>wnNNNNNNN", is_tensor_copy);
  add(t, "cp.async.bulk.tensor.out", store_tile, "*>wnNNNNNNN", is_tensor_copy);
}

}  // namespace sim
