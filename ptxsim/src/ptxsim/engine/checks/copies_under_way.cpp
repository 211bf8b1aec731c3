#include "copies_under_way.hpp"

#include <algorithm>

namespace sim {
namespace {

constexpr u32 GROUPS = 1 << 12;            // told apart
constexpr u32 NEVER = (1 << 22) - GROUPS;  // the first of as many times that do not come

Epoch epoch_of(const Warp& w, const Warp::Store& store) {
  return {w.index * LANES + store.lane, NEVER + store.group % GROUPS};
}

bool meets(u64 address, u32 bytes, const Extent& e) {
  return address < e.address + e.bytes && e.address < address + bytes;
}

Region::Stamp reader_in(const Block& b, u64 address, u32 bytes) {
  for (const Warp& w : b.warps)
    for (const AsyncCopy& c : w.async)
      for (u32 rest = c.mask; rest; rest &= rest - 1)
        if (const int l = __builtin_ctz(rest); meets(address, bytes, c.source[l]))
          return {b.linear + 1, w.epoch(l), c.pc};
  for (const auto& [at, barrier] : b.mbarriers)
    for (const auto* copies : {&barrier.landing, &barrier.landed})
      for (const Landing& each : *copies)
        if (meets(address, bytes, each.from)) return each.copy;
  return {};
}

}  // namespace

void hold_back(Warp& w, int lane, Region& r, u64 address, u32 bytes) {
  if (w.block->machine->sampling) return;
  const Warp::Store store{u32(lane), w.bulk_group[lane], {address, bytes}};
  const u32 shift = w.program->global_shift;
  for (u64 at = address - r.base; at < address - r.base + bytes; at += 1u << shift)
    r.stamps[at >> shift].epoch = epoch_of(w, store);
  w.storing.push_back(store);
}

void finish_stores(Warp& w, i64 keep) {
  const u32 shift = w.program->global_shift;
  const auto written = [&](const Warp::Store& store) {
    const bool waited = w.exec >> store.lane & 1;
    if (!waited || i64(store.group) >= i64(w.bulk_group[store.lane]) - keep) return false;
    i64 index;
    Region& r = *w.block->machine->find(store.to.address, index);
    const u64 first = store.to.address - r.base;
    for (u64 at = first; at < std::min(first + store.to.bytes, r.size); at += 1u << shift) {
      Region::Stamp& s = r.stamps[at >> shift];
      if (s.block == w.home->linear + 1 && s.epoch == epoch_of(w, store))
        s.epoch = w.epoch(store.lane);
    }
    return true;
  };
  std::erase_if(w.storing, written);
}

bool may_be_missing(const Region::Stamp& write) { return write.epoch.time() >= NEVER; }

Region::Stamp still_reads(const Warp& w, u64 address, u32 bytes) {
  if (!w.home->cluster) return reader_in(*w.home, address, bytes);
  for (const Block* b : w.home->cluster->blocks)
    if (const auto found = reader_in(*b, address, bytes); found.block) return found;
  return {};
}

}  // namespace sim
