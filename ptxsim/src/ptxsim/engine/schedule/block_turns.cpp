// The warps of a block take turns: each runs to its next barrier; a warp that spins gives way when
// its fuel is spent, and so does a block.
#include <algorithm>
#include <ctime>
#include <utility>

#include "../program/operations.hpp"
#include "turns.hpp"

namespace sim {
namespace {

constexpr u64 LONG_TURN = 8 * WARP_FUEL;  // basic blocks that a block runs before others do
constexpr int IDLE = 2;  // turns in which its warps only wait before other blocks run

void report_deadlock(Block& b) {
  for (Warp& w : b.warps)
    for (const Group& g : w.others)
      if (g.wait == Group::in_barrier) {
        w.pc = g.pc - 1;
        Event e = event_at(w, DEADLOCK, __builtin_ctz(g.mask));
        note_calls(e, g.stack);
        const Barrier& barrier = b.barriers[g.barrier_id];
        set_details(e, {barrier.arrived, barrier.expected ? barrier.expected : b.live});
        b.machine->report(e);
        b.machine->deadlocked = true;
        return;
      }
}

// The mbarrier that the warp looked at last, or null.
const MBarrier* waited_for(const Warp& w) {
  if (!w.look.mbarrier) return nullptr;
  const u64 owner = w.look.mbarrier >> 24 & 0xff;
  const Block& block = owner && w.home->cluster && owner <= w.home->cluster->blocks.size()
                           ? *w.home->cluster->blocks[owner - 1]
                           : *w.home;
  const auto found = block.mbarriers.find(u32(w.look.mbarrier & 0xffffff));
  return found == block.mbarriers.end() ? nullptr : &found->second;
}

}  // namespace

bool counts_bytes_wrong(const Warp& w) {
  const MBarrier* b = waited_for(w);
  return b && !b->pending && b->transactions;
}

const Warp* stuck_at_mbarrier(const Block& b, bool for_long) {
  const Warp* found = nullptr;
  for (const Warp& w : b.warps) {
    if (w.done()) continue;
    const bool others_run = std::any_of(w.others.begin(), w.others.end(), [&](const Group& g) {
      return g.wait == Group::ready && g.pc != w.look.pc + 1;
    });
    if (w.waited && w.look.mbarrier && (for_long || w.look.waits))
      found = !found || (counts_bytes_wrong(w) && !counts_bytes_wrong(*found)) ? &w : found;
    else if (w.now.mask) return nullptr;
    if (others_run && !for_long) return nullptr;
  }
  return found;
}

void report_mbarrier(const Warp& w) {
  Machine& m = *w.home->machine;
  Event e = event_at(w, MBARRIER_NEVER_COMPLETES, __builtin_ctz(w.live));
  e.pc = e.other_pc = w.look.pc;
  if (const MBarrier* b = waited_for(w)) {
    e.other_pc = b->creator_pc;
    set_details(e, {b->count - b->pending, b->count, i64(b->announced), b->transactions});
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
  if (interrupted) return;
  if (const Warp* stuck = stuck_at_mbarrier(*w.home, true)) return report_mbarrier(*stuck);
  if (!w.done()) m.report(event_at(w, ENDLESS, w.now.mask ? __builtin_ctz(w.now.mask) : 0));
}

bool spent(const Machine& m) { return m.steps > m.step_limit || cpu_seconds() > m.deadline; }

Outcome run(Block& b) {
  Machine& m = *b.machine;
  const bool alone = !b.cluster || b.cluster->blocks.size() == 1;
  const u64 begun = m.steps;
  int idle = 0;
  for (u64 turn = 1;; ++turn) {
    bool spun = false, busy = false, looks = false, at_mbarrier = false;
    const u64 steps_before = m.steps;
    const u32 live_before = b.live;
    u64 moved = 0;
    for (size_t k = 0; k < b.warps.size(); ++k) {
      Warp& w = b.warps[m.warp_order[k]];
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
      const bool due = spun || !(turn & (m.sampling ? 7 : 1023));
      if (interrupted.load(std::memory_order_relaxed) || (due && spent(m))) {
        report_out_of_time(w);
        return Outcome::finished;
      }
    }
    if (!b.live) return Outcome::finished;
    if (std::exchange(b.preempted, false)) return Outcome::preempted;
    if (m.steps == steps_before && !moved && b.live == live_before) {
      report_deadlock(b);
      return Outcome::finished;
    }
    if (m.steps - begun >= LONG_TURN) return Outcome::paused;
    idle = busy ? 0 : idle + 1;
    b.polls = busy ? 0 : b.polls + 1;
    if (idle >= IDLE && alone) {
      if (const Warp* w = stuck_at_mbarrier(b, b.polls >= MANY_POLLS)) {
        report_mbarrier(*w);
        return Outcome::finished;
      }
    }
    if (idle >= IDLE && !looks && !alone) return Outcome::polling;
    if (idle >= IDLE && looks) return at_mbarrier ? Outcome::polling : Outcome::waiting;
  }
}

}  // namespace sim
