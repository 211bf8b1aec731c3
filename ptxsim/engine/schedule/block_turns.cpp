// The warps of a block take turns: each runs to its next barrier; a warp that spins gives way when
// its fuel is spent, and so does a block.
#include <algorithm>
#include <ctime>

#include "../program/operations.hpp"
#include "turns.hpp"

namespace sim {
namespace {

constexpr int SPINS = 8;  // turns in which a block's warps spin before other blocks run
constexpr int IDLE = 2;   // turns in which its warps only wait before other blocks run

void report_deadlock(Block& b) {
  for (Warp& w : b.warps)
    for (const Group& g : w.others)
      if (g.wait == Group::in_barrier) {
        w.pc = g.pc - 1;
        Event e = event_at(w, DEADLOCK, __builtin_ctz(g.mask));
        const Barrier& barrier = b.barriers[g.barrier_id];
        e.arrived = barrier.arrived;
        e.expected = barrier.expected ? barrier.expected : b.live;
        b.machine->report(e);
        b.machine->deadlocked = true;
        return;
      }
}

// Every warp waits: one at an mbarrier, the others there, too, or at a barrier.
const Warp* stuck_at_mbarrier(const Block& b) {
  const Warp* found = nullptr;
  for (const Warp& w : b.warps) {
    if (w.done()) continue;
    const bool others_run = std::any_of(w.others.begin(), w.others.end(), [&](const Group& g) {
      return g.wait == Group::ready && g.pc != w.look.pc + 1;
    });
    if (w.waited && w.look.waits && w.look.mbarrier) found = found ? found : &w;
    else if (w.now.mask) return nullptr;
    if (others_run) return nullptr;
  }
  return found;
}

}  // namespace

void report_mbarrier(const Warp& w) {
  Machine& m = *w.home->machine;
  Event e = event_at(w, MBARRIER_NEVER_COMPLETES, __builtin_ctz(w.live));
  e.pc = e.other_pc = w.look.pc;
  const u64 owner = w.look.mbarrier >> 24 & 0xff;
  const Block& block = owner && w.home->cluster && owner <= w.home->cluster->blocks.size()
                           ? *w.home->cluster->blocks[owner - 1]
                           : *w.home;
  const auto found = block.mbarriers.find(u32(w.look.mbarrier & 0xffffff));
  if (found != block.mbarriers.end()) {
    const MBarrier& b = found->second;
    e.other_pc = b.creator_pc;
    e.arrived = b.count - b.pending;
    e.expected = b.count;
    e.mask = u32(b.transactions);
  }
  m.report(e);
  m.deadlocked = true;
}

double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

void report_out_of_time(const Warp& w) {
  Machine& m = *w.block->machine;
  m.out_of_time = true;
  if (!w.done()) m.report(event_at(w, ENDLESS, w.now.mask ? __builtin_ctz(w.now.mask) : 0));
}

bool spent(const Machine& m) { return m.steps > m.step_limit || cpu_seconds() > m.deadline; }

Outcome run(Block& b) {
  Machine& m = *b.machine;
  int spins = 0, idle = 0;
  for (u64 turn = 1;; ++turn) {
    bool spun = false, busy = false, looks = false, at_mbarrier = false;
    const u64 steps_before = m.steps;
    const u32 live_before = b.live;
    u64 moved = 0;
    for (Warp& w : b.warps) {
      if (w.done()) continue;
      const u32 pc = w.pc;
      const bool was_running = w.now.mask;
      run_warp(w);
      if (b.stopped) return Outcome::finished;
      m.steps += WARP_FUEL - std::max<i64>(w.fuel, 0);
      moved += was_running || w.pc != pc;
      busy |= (was_running || w.pc != pc || w.fuel < WARP_FUEL) && !w.waited;
      looks |= w.waited && w.look.waits;
      at_mbarrier |= w.waited && !w.look.waits;
      spun |= w.fuel < 0;
      if ((spun || !(turn & (m.sampling ? 7 : 1023))) && spent(m)) {
        report_out_of_time(w);
        return Outcome::finished;
      }
    }
    if (!b.live) return Outcome::finished;
    if (m.steps == steps_before && !moved && b.live == live_before) {
      report_deadlock(b);
      return Outcome::finished;
    }
    if (spun && ++spins >= SPINS) return Outcome::paused;
    idle = busy ? 0 : idle + 1;
    if (idle >= IDLE && (!b.cluster || b.cluster->blocks.size() == 1)) {
      if (const Warp* w = stuck_at_mbarrier(b)) {
        report_mbarrier(*w);
        return Outcome::finished;
      }
    }
    if (idle >= IDLE && looks) return at_mbarrier ? Outcome::paused : Outcome::waiting;
  }
}

}  // namespace sim
