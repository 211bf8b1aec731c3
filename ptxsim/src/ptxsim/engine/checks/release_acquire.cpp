
#include "release_acquire.hpp"

#include <algorithm>

namespace sim {

// One entry per block, ascending: its number, the times of its warps, then for each of its
// warpgroups how many groups of wgmma have ended, and where the async proxy reads what other blocks
// wrote, what a fence.proxy.async has shown of its warps.
struct GridClock {
  std::vector<u32> entries;
  u32 stride = 0;           // numbers of one entry
  bool everything = false;  // more than is kept: all is taken to be ordered, so as to accuse nobody

  const u32* find(u32 block) const {
    size_t low = 0, high = entries.size() / stride;
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (entries[middle * stride] < block) low = middle + 1;
      else high = middle;
    }
    const size_t at = low * stride;
    return at < entries.size() && entries[at] == block ? &entries[at] : nullptr;
  }
};

namespace {

constexpr size_t MOST_ENTRIES = 1 << 15;  // numbers that one GridClock holds
constexpr size_t MOST_FLAGS = 1 << 18;    // of a launch, or of a block's shared memory

bool covers(const GridClock& all, const GridClock& some) {
  if (all.everything || some.everything) return all.everything;
  if (all.entries.size() < some.entries.size()) return false;
  for (size_t at = 0; at < some.entries.size(); at += some.stride) {
    const u32* entry = all.find(some.entries[at]);
    if (!entry) return false;
    for (u32 k = 1; k < some.stride; ++k)
      if (entry[k] < some.entries[at + k]) return false;
  }
  return true;
}

GridClockPtr both(const GridClock& a, const GridClock& b) {
  auto both = std::make_shared<GridClock>();
  const u32 stride = both->stride = a.stride;
  both->entries.reserve(a.entries.size() + b.entries.size());
  auto one = a.entries.begin(), other = b.entries.begin();
  while (one != a.entries.end() || other != b.entries.end()) {
    const bool mine = other == b.entries.end() || (one != a.entries.end() && *one < *other);
    const bool same = !mine && one != a.entries.end() && *one == *other;
    auto& from = mine ? one : other;
    both->entries.insert(both->entries.end(), from, from + stride);
    from += stride;
    if (!same) continue;
    u32* entry = both->entries.data() + both->entries.size() - stride;
    for (u32 k = 1; k < stride; ++k) entry[k] = std::max(entry[k], one[k]);
    one += stride;
  }
  if (both->entries.size() > MOST_ENTRIES) {
    both->entries.clear();
    both->everything = true;
  }
  return both;
}

u32 warpgroups(const Block& b) {
  return (u32(b.warps.size()) + WARPS_OF_A_GROUP - 1) / WARPS_OF_A_GROUP;
}

bool tracks_proxy(const Block& b) {
  return b.machine->cluster_size() > 1 || b.program->has_bulk_copies;
}

// Where in an entry stands what of its warps the async proxy sees.
size_t proxy_times(const Block& b) { return 1 + b.warps.size() + warpgroups(b); }

// What `clocks` holds of the block's own warps, as others keep it. shown: to the async proxy.
std::shared_ptr<GridClock> of_block(const Block& b, const VectorClock& clocks,
                                    const u32* shown_of) {
  auto own = std::make_shared<GridClock>();
  const u32 warps = u32(b.warps.size()), groups = warpgroups(b),
            shown = tracks_proxy(b) ? warps : 0;
  own->stride = 1 + warps + groups + shown;
  own->entries.reserve(own->stride);
  own->entries.push_back(b.linear);
  own->entries.insert(own->entries.end(), clocks.warps, clocks.warps + warps);
  own->entries.insert(own->entries.end(), clocks.products, clocks.products + groups);
  own->entries.insert(own->entries.end(), shown_of, shown_of + shown);
  return own;
}

bool covers(const GridClockPtr& clock, const Region::Stamp& access) {
  if (!clock) return false;
  if (clock->everything) return true;
  const u32* entry = clock->find(access.block - 1);
  return entry && access.epoch.time() <= entry[1 + access.epoch.warp()];
}

// Whether only some lanes of a warp of the cluster released, and not those of the access.
bool omits(const Warp& w, const GridClock& clock, const Region::Stamp& access) {
  if (!w.home->cluster || clock.everything) return false;
  const u32 warp = access.epoch.warp(), *entry = clock.find(access.block - 1);
  for (const Block* b : w.home->cluster->blocks)
    if (b->linear == access.block - 1) return b->warps[warp].omits(entry[1 + warp], access.epoch);
  return false;
}

void release_to(Flags& flags, u64 address, const GridClockPtr& clock) {
  if (flags.size() >= MOST_FLAGS && !flags.count(address)) return;
  GridClockPtr& flag = flags[address];
  flag = join(flag, clock);
}

// What the executing lanes have acquired of other blocks.
GridClockPtr others_of(const Warp& w) {
  return w.uses_lane_clocks() ? join(w.clocks.others, w.lane_clocks.others) : w.clocks.others;
}

bool too_many_flags(const Machine& m) { return m.flags.size() >= MOST_FLAGS; }

}  // namespace

GridClockPtr join(const GridClockPtr& a, const GridClockPtr& b) {
  if (!b || a == b) return a;
  if (!a || covers(*b, *a)) return b;
  if (covers(*a, *b)) return a;
  return both(*a, *b);
}

GridClockPtr grid_clock(const Block& b, const Clocks& clocks) {
  return join(clocks.others, of_block(b, clocks, clocks.proxy));
}

GridClockPtr release_clock(const Warp& w) { return grid_clock(*w.home, w.release_clocks()); }

GridClockPtr release_clock(const Warp& w, const VectorClock& fence) {
  return join(fence.others, of_block(*w.home, fence, w.clocks.proxy));
}

GridClockPtr own_time(const Warp& w) {
  Clocks clocks;
  clocks.warps[w.index] = w.time;
  return of_block(*w.home, clocks, clocks.proxy);
}

Clocks acquired(const GridClockPtr& from, const Block& b) {
  Clocks clocks;
  clocks.others = from;
  if (!from) return clocks;
  const u32* own = from->everything ? nullptr : from->find(b.linear);
  for (u32 k = 0; k < b.warps.size(); ++k)
    clocks.warps[k] = own ? own[1 + k] : from->everything ? b.warps[k].clocks.warps[k] : 0;
  for (u32 k = 0; k < warpgroups(b); ++k)
    clocks.products[k] = own ? own[1 + b.warps.size() + k] : from->everything ? ~0u : 0;
  for (u32 k = 0; k < b.warps.size() && tracks_proxy(b); ++k)
    clocks.proxy[k] = own ? own[proxy_times(b) + k] : clocks.warps[k];
  return clocks;
}

void VectorClock::join_own(const VectorClock& more) {
  for (u32 k = 0; k < 32; ++k) warps[k] = std::max(warps[k], more.warps[k]);
  for (u32 k = 0; k < WARPGROUPS; ++k) products[k] = std::max(products[k], more.products[k]);
}

void VectorClock::join(const VectorClock& more) {
  join_own(more);
  others = sim::join(others, more.others);
}

bool VectorClock::none() const {
  return !others && std::all_of(warps, warps + 32, [](u32 time) { return !time; });
}

void Clocks::join(const Clocks& more) {
  VectorClock::join(more);
  for (u32 k = 0; k < 32; ++k) proxy[k] = std::max(proxy[k], more.proxy[k]);
  block_fence.join(more.block_fence);
  device_fence.join(more.device_fence);
  flag_clock.join(more.flag_clock);
}

void Signal::load(u64 address) { acquire(address, order & ACQUIRES ? By::acquire : By::flag); }

// A block that counts itself by an atomic operation, behind a fence, and finds that it is the last
// goes on without another: so do NVIDIA's samples. To change nothing is to look at a flag.
void Signal::update(u64 address, bool same) {
  const VectorClock& fence = within ? warp.clocks.block_fence : warp.clocks.device_fence;
  const bool counts = fence.warps[warp.index] && !same;
  acquire(address, order & ACQUIRES || counts ? By::acquire : By::flag);
}

void Signal::lock(u64 address) { acquire(address, order & ACQUIRES ? By::acquire : By::lock); }

void Signal::acquire(u64 address, By by) {
  const Machine& m = *warp.block->machine;
  const Flags& own = warp.block->flags;
  if (shared || !own.empty()) {
    const auto found = own.find(address);
    if (found != own.end()) acquire(found->second, by, false);
  }
  if (shared) return;
  // A warp that waits in grid.sync() acquires what blocks released before it opened, not later
  // ones.
  const auto found = m.flags.find(address == m.counter() ? m.workspace : address);
  if (found != m.flags.end()) acquire(found->second, by, within);
}

void Signal::acquire(const GridClockPtr& from, By by, bool of_block) {
  Clocks& own = warp.whole() ? warp.clocks : warp.lane_clocks;
  VectorClock& kept = by == By::acquire ? own
                      : by == By::flag  ? warp.clocks.flag_clock
                                        : warp.lock_clock;
  const bool by_all = &kept != &warp.lane_clocks || !(warp.exec & ~warp.some_lanes);
  if (from == kept.others && by_all) return;
  Clocks clocks = acquired(from, *warp.home);
  if (of_block) clocks.others = nullptr;
  if (by == By::acquire) warp.acquire(clocks, warp.exec);
  else kept.join(clocks);
}

GridClockPtr Signal::release_clock(bool of_block) const {
  if (order & RELEASES) return sim::release_clock(warp);
  const VectorClock& fence = of_block ? warp.clocks.block_fence : warp.clocks.device_fence;
  return fence.none() ? nullptr : sim::release_clock(warp, fence);
}

void Signal::release(u64 address) {
  if (!tried) {
    const Clocks& own = warp.clocks;
    const bool more =
        !std::equal(own.block_fence.warps, own.block_fence.warps + 32, own.device_fence.warps);
    if (!within) clock = release_clock(false);
    if (within || (more && !shared && !(order & RELEASES))) block_clock = release_clock(true);
  }
  tried = true;
  if (clock) release_to(shared ? warp.block->flags : warp.block->machine->flags, address, clock);
  if (block_clock) release_to(warp.block->flags, address, block_clock);
}

void Signal::open_grid() {
  Machine& m = *warp.block->machine;
  m.flags[m.workspace] = m.flags[m.counter()];
}

bool ordered_elsewhere(const Warp& w, int lane, const Region::Stamp& access) {
  if (too_many_flags(*w.block->machine)) return true;
  const auto ordered = [&](const GridClockPtr& clock) {
    return covers(clock, access) && !omits(w, *clock, access);
  };
  return ordered(w.clocks.others) || (w.some_lanes >> lane & 1 && ordered(w.lane_clocks.others));
}

bool flag_orders(const Warp& w, const Region::Stamp& access) {
  return access.block == w.home->linear + 1 ? w.ordered_by_flag(access.epoch)
                                            : covers(w.clocks.flag_clock.others, access);
}

bool lock_orders(const Warp& w, const Region::Stamp& access) {
  if (access.block != w.home->linear + 1) return covers(w.lock_clock.others, access);
  const u32 warp = access.epoch.warp();
  return warp != w.index && access.epoch.time() <= w.lock_clock.warps[warp];
}

bool wgmma_ended_elsewhere(const Warp& w, const Block& block, Epoch read) {
  const GridClockPtr others = others_of(w);
  if (too_many_flags(*w.block->machine) || (others && others->everything)) return true;
  const u32* entry = others ? others->find(block.linear) : nullptr;
  const size_t group = read.warp() / WARPS_OF_A_GROUP;
  return entry && read.time() <= entry[1 + block.warps.size() + group];
}

GridClockPtr with_proxy_fence(const GridClockPtr& clock, const Block& b) {
  if (!clock || clock->everything || !tracks_proxy(b)) return clock;
  auto shown = std::make_shared<GridClock>(*clock);
  for (size_t at = 0; at < shown->entries.size(); at += shown->stride)
    for (size_t k = 0; k < b.warps.size(); ++k)
      shown->entries[at + proxy_times(b) + k] = shown->entries[at + 1 + k];
  return shown;
}

bool proxy_sees(const Warp& w, const Region::Stamp& write) {
  if (write.block == w.home->linear + 1)
    return write.epoch.time() <= w.proxy_time(write.epoch.warp());
  const GridClockPtr others = others_of(w);
  if (too_many_flags(*w.block->machine) || !others || others->everything) return true;
  const u32* entry = others->find(write.block - 1);
  return !entry || write.epoch.time() <= entry[proxy_times(*w.home) + write.epoch.warp()];
}

bool after_start(const Warp& w, u32 block) {
  if (too_many_flags(*w.block->machine)) return true;
  const GridClockPtr others = others_of(w);
  return others && (others->everything || others->find(block));
}

bool ordered_before_exit(const Block& b, const Region::Stamp& access) {
  return too_many_flags(*b.machine) || covers(b.exit_clocks.others, access);
}

}  // namespace sim
