// Blocks before their first instruction.
#include <algorithm>

#include "../checks/undefined.hpp"
#include "../limits.hpp"
#include "turns.hpp"

namespace sim {
namespace {

void fill(Warp& w, i32 slot, u32 width, u64 value) {
  if (width == 8) std::fill_n(lanes<u64>(w, slot), LANES, value);
  else std::fill_n(lanes<u32>(w, slot), LANES, u32(value));
}

void special(Warp& w, SpecialRegister which, u64 value) {
  if (w.program->special[which] >= 0) fill(w, w.program->special[which], 4, value);
}

template <class F> void special_lanes(Warp& w, SpecialRegister which, F f) {
  if (w.program->special[which] < 0) return;
  u32* d = lanes<u32>(w, w.program->special[which]);
  for (int l = 0; l < LANES; ++l) d[l] = f(u32(l));
}

}  // namespace

void prepare(Block& b, Machine& m) {
  b.machine = &m;
  b.program = m.program;
  b.threads = m.ntid.x * m.ntid.y * m.ntid.z;
  const u32 shared = m.program->shared_bytes + m.dynamic_bytes;
  b.shared.resize(shared + 128);
  b.cells.resize(b.shared.size() >> m.program->shared_shift);
  b.warps = std::vector<Warp>((b.threads + LANES - 1) / LANES);
  for (u32 k = 0; k < b.warps.size(); ++k) {
    Warp& w = b.warps[k];
    w.block = &b;
    w.home = &b;
    w.program = m.program;
    w.index = k;
    w.regs_store.resize(size_t(m.program->slots) * 128 + 64);
    w.regs =
        w.regs_store.data() + (64 - reinterpret_cast<uintptr_t>(w.regs_store.data()) % 64) % 64;
    w.preds_store.resize(m.program->predicates + 1);
    w.preds = w.preds_store.data();
    w.local.resize(size_t(m.program->local_bytes) * LANES);
    w.unset.resize(w.local.size());
    w.unset_by.resize(w.local.size() / 4);
    for (const auto& c : m.program->constants) fill(w, c.slot, c.width, c.value);
    auto thread = [&](u32 l) { return k * LANES + l; };
    special_lanes(w, TID_X, [&](u32 l) { return thread(l) % m.ntid.x; });
    special_lanes(w, TID_Y, [&](u32 l) { return thread(l) / m.ntid.x % m.ntid.y; });
    special_lanes(w, TID_Z, [&](u32 l) { return thread(l) / m.ntid.x / m.ntid.y; });
    special_lanes(w, LANEID, [](u32 l) { return l; });
    special_lanes(w, LANEMASK_EQ, [](u32 l) { return 1u << l; });
    special_lanes(w, LANEMASK_LT, [](u32 l) { return (1u << l) - 1; });
    special_lanes(w, LANEMASK_LE, [](u32 l) { return (2u << l) - 1; });
    special_lanes(w, LANEMASK_GT, [](u32 l) { return ~((2u << l) - 1); });
    special_lanes(w, LANEMASK_GE, [](u32 l) { return ~((1u << l) - 1); });
    special(w, NTID_X, m.ntid.x);
    special(w, NTID_Y, m.ntid.y);
    special(w, NTID_Z, m.ntid.z);
    special(w, NCTAID_X, m.grid.x);
    special(w, NCTAID_Y, m.grid.y);
    special(w, NCTAID_Z, m.grid.z);
    special(w, WARPID, k);
    special(w, NWARPID, b.warps.size());
    special(w, CLUSTER_NCTAID_X, m.cluster.x);
    special(w, CLUSTER_NCTAID_Y, m.cluster.y);
    special(w, CLUSTER_NCTAID_Z, m.cluster.z);
    special(w, CLUSTER_NCTARANK, m.cluster_size());
    special(w, NCLUSTERID_X, m.grid.x / m.cluster.x);
    special(w, NCLUSTERID_Y, m.grid.y / m.cluster.y);
    special(w, NCLUSTERID_Z, m.grid.z / m.cluster.z);
    special(w, NSMID, MULTIPROCESSORS);
    special(w, GRIDID, 0);
    special(w, ENVREG1, m.workspace >> 32);
    special(w, ENVREG2, m.workspace);
    special(w, DYNAMIC_SMEM_SIZE, m.dynamic_bytes);
    const u32 system = m.program->arrays[m.program->reserved ? 1 : 0].start;
    const u32 units = (shared - system + SHARED_UNIT - 1) / SHARED_UNIT;
    special(w, TOTAL_SMEM_SIZE, u64(units) * SHARED_UNIT);
  }
}

void begin(Block& b, u32 linear) {
  const Machine& m = *b.machine;
  b.linear = linear;
  b.id = block_at(m, linear);
  b.live = b.threads;
  b.fenced = b.stopped = b.preempted = b.stored = b.waited = b.triggered = false;
  b.polls = 0;
  b.past_wait.clear();
  b.unfenced.clear();
  u32* words = reinterpret_cast<u32*>(b.shared.data());
  std::fill(words, words + b.shared.size() / 4, m.filler);
  std::memset(static_cast<void*>(b.cells.data()), 0, b.cells.size() * sizeof(Cell));
  for (u32 at = 0; at < b.program->reserved; at += 1u << b.program->shared_shift)
    b.cells[(b.program->arrays[0].start + at) >> b.program->shared_shift].writer.epoch = BEFORE_ALL;
  for (Barrier& barrier : b.barriers)
    if (barrier.arrived) barrier = {};
  b.reading.clear();
  b.peers.clear();
  b.hidden.clear();
  b.externs.assign(m.program->extern_ends.empty() || m.sampling ? 0 : b.cells.size(), {});
  b.visitors.clear();
  b.cluster = nullptr;
  b.rank = 0;
  b.at_cluster_barrier = b.past_cluster_barrier = {};
  b.exit_clocks = {};
  b.left = {};
  b.mbarriers.clear();
  b.flags.clear();
  for (Warp& w : b.warps) {
    u32 lanes_here = std::min(u32(LANES), b.threads - w.index * LANES);
    w.live = w.started = lanes_here == 32 ? ALL : (1u << lanes_here) - 1;
    w.now = Group{};
    w.now.mask = w.live;
    w.pc = m.program->entry;
    w.others.clear();
    w.fair = w.forced = w.passed = w.resting = w.waited = w.tainted = w.repeats = false;
    w.polls = ~0u;
    w.look = {};
    w.turns = w.cc = w.past_wait = w.preempted = w.gives_way = 0;
    u32* const unwritten = reinterpret_cast<u32*>(w.local.data());
    std::fill(unwritten, unwritten + w.local.size() / 4, m.filler);
    std::fill(w.unset.begin(), w.unset.end(), u8{255});
    std::fill(w.unset_by.begin(), w.unset_by.end(), DEFINED);
    w.async.clear();
    w.storing.clear();
    for (auto& frames : w.saved) frames.clear();
    std::fill(w.async_group, w.async_group + LANES, 0);
    std::fill(w.bulk_group, w.bulk_group + LANES, 0);
    w.wgmma_group = 0;
    w.warpgroup = {};
    w.settled.clear();
    w.wgmmas.clear();
    w.cluster_phase = 0;
    w.time = 1;
    w.lane_releases.clear();
    w.some_released = false;
    w.clocks = w.lane_clocks = {};
    w.some_lanes = w.joined_time = w.released_time = 0;
    w.lane_joins.clear();
    std::fill(std::begin(w.observations), std::end(w.observations), Warp::Observation{});
    w.observed = 0;
    w.lock_clock = {};
    special(w, CTAID_X, b.id.x);
    special(w, CTAID_Y, b.id.y);
    special(w, CTAID_Z, b.id.z);
    special(w, SMID, linear % MULTIPROCESSORS);
    const Dim c = m.cluster;
    const Dim own{b.id.x % c.x, b.id.y % c.y, b.id.z % c.z};
    special(w, CLUSTER_CTAID_X, own.x);
    special(w, CLUSTER_CTAID_Y, own.y);
    special(w, CLUSTER_CTAID_Z, own.z);
    special(w, CLUSTER_CTARANK, own.x + c.x * (own.y + c.y * own.z));
    special(w, CLUSTERID_X, b.id.x / c.x);
    special(w, CLUSTERID_Y, b.id.y / c.y);
    special(w, CLUSTERID_Z, b.id.z / c.z);
  }
}

}  // namespace sim
