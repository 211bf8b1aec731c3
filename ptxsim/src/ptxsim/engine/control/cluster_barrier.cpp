// The barrier of a cluster.
#include "../checks/release_acquire.hpp"
#include "../program/operations.hpp"

namespace sim {
namespace {

u32 living(const Cluster& cluster) {
  u32 threads = 0;
  for (const Block* block : cluster.blocks) threads += block->live;
  return threads;
}

void pass_if_complete(Cluster& cluster, Machine& m) {
  if (cluster.arrived < living(cluster)) return;
  cluster.arrived = 0;
  ++cluster.phase;
  ++m.changes;
  // The barrier waits for no thread that has left: it is ordered after their exit.
  for (const Block* block : cluster.blocks)
    cluster.arriving = join(cluster.arriving, grid_clock(*block, block->exit_clocks));
  cluster.passed = join(cluster.passed, cluster.arriving);
  cluster.arriving = nullptr;
  for (const auto& [block, visit] : cluster.parting)
    std::erase_if(block->visitors, [&](const Region::Stamp& other) {
      return other.block == visit.block && other.epoch == visit.epoch && other.pc == visit.pc;
    });
  cluster.parting.clear();
  for (Block* block : cluster.blocks) {
    block->past_cluster_barrier.join(block->at_cluster_barrier);
    block->at_cluster_barrier = {};
  }
}

// A block that is in no cluster is one by itself.
Cluster& cluster_of(Warp& w) {
  Block& b = *w.block;
  if (!b.cluster) {
    b.cluster = std::make_shared<Cluster>();
    b.cluster->blocks.push_back(&b);
  }
  return *b.cluster;
}

// All that the warp did has ended when the others pass, whether or not they acquire it.
void part(const Warp& w, Cluster& cluster) {
  for (Block* block : cluster.blocks)
    for (const Region::Stamp& visitor : block->visitors)
      if (visitor.block == w.home->linear + 1 && visitor.epoch.warp() == w.index)
        cluster.parting.push_back({block, visitor});
}

template <bool relaxed> Flow arrive(Warp& w, const Ins&) {
  Cluster& cluster = cluster_of(w);
  w.block->at_cluster_barrier.join(relaxed ? w.fence_clocks() : w.release_clocks());
  w.cluster_phase = cluster.phase;
  const GridClockPtr released =
      relaxed ? release_clock(w, w.clocks.device_fence) : release_clock(w);
  cluster.arriving = join(cluster.arriving, released);
  if (relaxed) part(w, cluster);
  cluster.arrived += __builtin_popcount(w.exec);
  ++w.block->machine->changes;
  w.tick();
  pass_if_complete(cluster, *w.block->machine);
  return Flow::next;
}

Flow wait_for_cluster(Warp& w, const Ins&) {
  Cluster& cluster = cluster_of(w);
  pass_if_complete(cluster, *w.block->machine);  // others may have left
  if (cluster.phase == w.cluster_phase) {
    w.look = Look{.pc = w.pc, .seen = 0, .changes = w.block->machine->changes, .waits = true};
    w.resting = true;
    return Flow::yield;
  }
  w.acquire(acquired(cluster.passed, *w.home), ALL);
  w.acquire(w.block->past_cluster_barrier, ALL);
  w.tick();
  return Flow::next;
}

}  // namespace

void add_cluster_barrier(Table& t) {
  add(t, "barrier.cluster.arrive", arrive<false>, ">");
  add(t, "barrier.cluster.arrive.relaxed", arrive<true>, ">");
  add(t, "barrier.cluster.wait", wait_for_cluster, ">");
}

}  // namespace sim
