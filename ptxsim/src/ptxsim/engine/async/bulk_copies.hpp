// Bulk copies: cp.async.bulk and, by tensor maps, cp.async.bulk.tensor.
//
// What a copy brings to shared memory is there at once, but counts as under way until somebody has
// waited for the mbarrier that it completes on. What a copy takes from shared memory counts as
// being read until its thread has waited for its group, or somebody for its mbarrier.
// checks/copies_under_way.hpp has the same of global memory.
#pragma once

#include <algorithm>
#include <vector>

#include "../memory/access.hpp"
#include "../memory/reductions.hpp"
#include "../tensor_map.hpp"

namespace sim {

constexpr u32 PIECE = 16;  // bytes that are swizzled as one

void report_misaligned(Warp& w, int lane, u64 address, u32 size, u8 space);

// --- global memory

struct Tile;
// Reads global memory into the tile, from its byte `at` on.
void fetch(Warp& w, int lane, u64 address, u32 bytes, Tile& tile, u32 at);
void put_back(Warp& w, int lane, u64 address, u32 bytes, const u8* from,
              const Reduction* reduction = nullptr);
void count_global_side(Warp& w, u32 bytes, u64 sectors);
// Of 32 bytes, between an address and the end of what begins there.
constexpr u64 sectors(u64 address, u64 bytes) { return (address + bytes + 31) / 32 - address / 32; }

// --- shared memory

// What moves, as it lies in shared memory: a swizzle exchanges its pieces.
struct Tile {
  std::vector<u8> data;
  std::vector<u8> undefined;  // per piece
  std::vector<u8> stored;     // per piece taken from shared memory: how many bytes go on from there
  std::vector<Extent> sources;  // what was read for it
  u32 row, pitch;               // bytes of a row, and from one to the next in shared memory
  u32 swizzle;

  explicit Tile(u32 bytes) : Tile(bytes, std::max(bytes, 1u), std::max(bytes, 1u), 0) {}
  Tile(u32 bytes, u32 row, u32 pitch, u32 swizzle)
      : data(bytes), undefined((bytes + PIECE - 1) / PIECE), stored(undefined.size(), PIECE),
        row(row), pitch(pitch), swizzle(swizzle) {}
  u32 bytes() const { return u32(data.size()); }
  u32 room() const { return bytes() / row * pitch; }  // in shared memory
  // Of the piece at `at` in shared memory, if the tile begins at `start`.
  u32 place(u32 start, u32 at) const {
    return swizzled(start + at / row * pitch + at % row, swizzle);
  }
};

// Whether these bytes lie in an array; else a finding.
bool in_shared(Warp& w, int lane, u32 address, u32 bytes, bool write);
// To one block, or to every block of the cluster that `ranks` names, at the same place in each.
// reduction: what is there is reduced with the tile; null: it is overwritten.
void deliver_to(Warp& w, int lane, const Tile& tile, u64 to, u64 barrier, const u32* ranks,
                const Reduction* reduction = nullptr);
constexpr u32 NO_GROUP = ~0u;  // of a copy that completes at an mbarrier
// Takes the tile from the warp's own shared memory.
void take(Warp& w, int lane, Tile& tile, u32 from, u32 group);

bool is_load_tile(const Ins& i);  // by a tensor map
bool is_store_tile(const Ins& i);

}  // namespace sim
