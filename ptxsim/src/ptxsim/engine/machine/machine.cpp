#include "machine.hpp"

#include <algorithm>

#include "../limits.hpp"

namespace sim {
namespace {

constexpr size_t MOST_LANE_RELEASES = 4096;  // of a warp: behind older ones all is in order
constexpr size_t MOST_LANE_JOINS = 64;       // groups of lanes, each in order among themselves

}  // namespace

Dim block_at(const Machine& m, u32 linear) {
  return {linear % m.grid.x, linear / m.grid.x % m.grid.y, linear / m.grid.x / m.grid.y};
}

Dim thread_at(const Machine& m, u32 thread) {
  return {thread % m.ntid.x, thread / m.ntid.x % m.ntid.y, thread / m.ntid.x / m.ntid.y};
}

bool Warp::covers(u32 until, Epoch then) const {
  return then.time() <= until && !(some_released && home->warps[then.warp()].omits(until, then));
}

bool Warp::omits(u32 until, Epoch then) const {
  const auto at =
      std::lower_bound(lane_releases.begin(), lane_releases.end(), until,
                       [](const LaneRelease& each, u32 time) { return each.time < time; });
  return at != lane_releases.end() && at->time == until && then.time() > at->since &&
         !(at->lanes >> then.lane() & 1);
}

bool Warp::ordered_for(Epoch then, int lane) const {
  if (some_lanes >> lane & 1 && covers(lane_clocks.warps[then.warp()], then)) return true;
  if (then.warp() != index) return false;
  if (covers(joined_time, then)) return true;
  return std::any_of(lane_joins.begin(), lane_joins.end(), [&](const LaneJoin& join) {
    return then.time() <= join.time && join.from >> then.lane() & join.to >> lane & 1;
  });
}

void Warp::observe(u64 place, const Region::Stamp& write, int lane) {
  if (!(program->code[write.pc & PC_MASK].flags & SYNCHRONISES)) return;  // no flag's
  Observation* const end = std::end(observations);
  Observation* at = std::find_if(std::begin(observations), end,
                                 [&](const Observation& each) { return each.place == place; });
  if (at == end) at = &observations[observed++ % std::size(observations)];
  if (at->place != place || !(at->write == write)) *at = {place, write, 0};
  at->lanes |= 1u << lane;
}

bool Warp::has_observed(u64 place, const Region::Stamp& write, int lane) const {
  return std::any_of(std::begin(observations), std::end(observations),
                     [&](const Observation& each) {
                       return each.place == place && each.write == write && each.lanes >> lane & 1;
                     });
}

void Warp::join_lanes() {
  const u32 own = clocks.warps[index];
  clocks.join(lane_clocks);
  clocks.warps[index] = own;
  lane_clocks = {};
  some_lanes = 0;
  lane_joins.clear();
}

void Warp::join_lanes(u32 part) {
  if (some_lanes & part) some_lanes |= part;
  for (LaneJoin& join : lane_joins)
    if (join.to & part) join.to |= part;
  std::erase_if(lane_joins, [&](const LaneJoin& join) { return !((join.from | join.to) & ~part); });
  if (lane_joins.size() == MOST_LANE_JOINS) return tick();  // so as to accuse nobody
  lane_joins.push_back({time++, part, part});
}

void Warp::release() {
  if (whole()) {
    released_time = time++;
    return;
  }
  auto& all = lane_releases;
  if (all.size() == MOST_LANE_RELEASES) all.erase(all.begin(), all.end() - MOST_LANE_RELEASES / 2);
  const u32 since = std::max(clocks.warps[index], released_time);
  u32 released = exec | (!all.empty() && all.back().since == since ? all.back().lanes : 0);
  for (const LaneJoin& join : lane_joins)
    if (join.to & exec) released |= join.from;
  all.push_back({time++, since, released});
  if (!some_released)
    for (Warp& each : home->warps) each.some_released = true;
}

Event event_at(const Warp& w, EventKind kind, int lane) {
  Event e{};
  e.kind = kind;
  e.pc = e.other_pc = w.pc;
  e.count = 1;
  e.region = -1;
  e.block = w.home->id;
  e.thread = thread_at(*w.block->machine, w.index * LANES + lane);
  note_calls(e, w.now.stack);
  return e;
}

void set_details(Event& e, std::initializer_list<i64> details) {
  std::copy(details.begin(), details.end(), e.details);
}

void note_calls(Event& e, const std::vector<u32>& stack) {
  std::fill(std::begin(e.calls), std::end(e.calls), 0);
  const size_t count = std::min(std::size(e.calls), stack.size());
  for (size_t k = 0; k < count; ++k) e.calls[k] = stack[stack.size() - 1 - k] - 1;
}

void Machine::report(Event e) {
  if (e.region >= 0 && e.space != SHARED && size_t(e.region) < regions.size()) {
    const Region& r = *regions[e.region];
    const bool inside = r.freed.block && within(e.address, 1, r.base, r.given);
    if (inside && r.freed.pc != ~0u) {
      if (e.kind == OUT_OF_BOUNDS) e.kind = USED_AFTER_FREE;
      e.region_size = r.given;
      e.other_pc = r.freed.pc;
      e.other_block = block_at(*this, r.freed.block - 1);
      e.other_thread = thread_at(*this, r.freed.epoch.thread());
    }
  }
  used |= looks_again &&
          (e.kind == UNDEFINED_STORE || e.kind == UNDEFINED_ADDRESS || e.kind == UNDEFINED_BRANCH);
  auto [at, fresh] = event_index.try_emplace({e.kind, e.pc, e.other_pc}, events.size());
  if (!fresh) events[at->second].count++;
  else if (events.size() < MAX_EVENTS) events.push_back(e);
  else event_index.erase(at);
}

Region* Machine::locate(u64 address, i64& index) {
  auto after =
      std::upper_bound(regions.begin(), regions.end(), address,
                       [](u64 a, const std::unique_ptr<Region>& r) { return a < r->base; });
  if (after == regions.begin()) return nullptr;
  index = after - regions.begin() - 1;
  return regions[index].get();  // the caller checks the size; this is the nearest one below
}

Region* Machine::find(u64 address, i64& index) {
  Region* const found = locate(address, index);
  if (!found || found->touched) return found;
  found->touched = true;
  const auto kept = std::lower_bound(before.regions.begin(), before.regions.end(), found->base,
                                     [](const Kept& k, u64 base) { return k.base < base; });
  if (kept != before.regions.end() && kept->base == found->base && !kept->held && !found->in_heap)
    kept->hold(*found);
  return found;
}

u32 Machine::block_in_cluster(u32 index, u32 rank) const {
  const u32 across = grid.x / cluster.x, down = grid.y / cluster.y;
  const Dim of{index % across, index / across % down, index / across / down};
  const Dim at{of.x * cluster.x + rank % cluster.x, of.y * cluster.y + rank / cluster.x % cluster.y,
               of.z * cluster.z + rank / cluster.x / cluster.y};
  return at.x + grid.x * (at.y + grid.y * at.z);
}

u64 Machine::block_bytes() const {
  const Program& p = *program;
  const u64 warps = (u64(ntid.x) * ntid.y * ntid.z + LANES - 1) / LANES;
  const u64 shared = u64(p.shared_bytes) + dynamic_bytes;
  const u64 cell = sizeof(Cell) + (cluster_size() > 1 ? sizeof(PeerCell) : 0) +
                   (p.extern_ends.empty() ? 0 : sizeof(ExternCell));
  return warps * (p.slots * u64{128} + p.local_bytes * u64{3} * LANES) + shared +
         (shared >> p.shared_shift) * cell;
}

}  // namespace sim
