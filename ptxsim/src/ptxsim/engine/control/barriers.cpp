#include "barriers.hpp"

#include "../checks/async_proxy.hpp"
#include "../checks/dependency.hpp"
#include "../checks/peers.hpp"
#include "../checks/undefined.hpp"
#include "../machine/machine.hpp"
#include "../program/operations.hpp"
#include "../schedule/divergence.hpp"
#include "branches.hpp"

namespace sim {
namespace {

enum Reduction : i64 { NONE, POPC, AND, OR };
Reduction reduction_of(const Ins& i) { return Reduction(i.reduction()); }

struct BarrierOperands {
  i32 result;  // of bar.red: a register for popc, else a predicate
  i32 vote;    // of bar.red
  i32 id;
  i32 threads;  // -1: all
};

// What bar.red gives every thread that waited.
void deliver(Warp& w, const Group& g, const Barrier& barrier) {
  const Ins& i = w.program->code[g.pc - 1];
  const Reduction reduction = reduction_of(i);
  const i32 target = operands<BarrierOperands>(i).result;
  if (reduction == NONE) return;
  if (reduction == POPC) {
    u32* d = lanes<u32>(w, target);
    for (int l = 0; l < LANES; ++l)
      if (g.mask >> l & 1) d[l] = barrier.votes;
    return;
  }
  const bool result = reduction == OR ? barrier.votes > 0 : barrier.votes == barrier.voters;
  w.preds[target] = (w.preds[target] & ~g.mask) | (result ? g.mask : 0);
}

// __syncthreads() is one meeting point: threads that wait at different ones have lost each other.
void report_mixed(Block& b) {
  const Group* first = nullptr;
  for (Warp& w : b.warps)
    for (const Group& g : w.others) {
      if (g.wait != Group::in_barrier || g.barrier_id) continue;
      if (!first) first = &g;
      if (first->pc == g.pc) continue;
      const u32 pc = w.pc;
      w.pc = g.pc - 1;
      Event e = event_at(w, BARRIERS_MIXED, __builtin_ctz(g.mask));
      note_calls(e, g.stack);
      e.other_pc = first->pc - 1;
      b.machine->report(e);
      w.pc = pc;
      return;
    }
}

void note_leavers(Block& b, u32 barrier) {
  b.left.barrier = barrier;
  for (const Warp& w : b.warps)
    for (u32 gone = w.started & ~w.live; gone; gone &= gone - 1) {
      const u32 lane = u32(__builtin_ctz(gone));
      if (!b.left.count++) {
        b.left.at = w.left_at[lane];
        b.left.first = w.index * LANES + lane;
      }
    }
}

void release_if_complete(Block& b, u32 id) {
  Barrier& barrier = b.barriers[id];
  if (!barrier.arrived) return;
  u32 expected = barrier.expected ? barrier.expected : b.live;
  if (barrier.arrived < expected) return;
  if (!id && !barrier.expected) report_mixed(b);
  // A barrier of all threads waits for no thread that has left: it is ordered after their exit.
  if (!barrier.expected) barrier.arrivals.join(b.exit_clocks);
  for (Warp& w : b.warps)
    for (Group& g : w.others)
      if (g.wait == Group::in_barrier && g.barrier_id == id) {
        g.wait = Group::ready;
        if (!barrier.expected && b.live < b.threads && !b.left.count) note_leavers(b, g.pc - 1);
        deliver(w, g, barrier);
        if (id < BARRIERS) w.acquire(barrier.arrivals, ALL);
        else w.warpgroup = barrier.arrivals;
      }
  barrier = {};
}

template <bool waits> Flow barrier(Warp& w, const Ins& i) {
  const auto o = operands<BarrierOperands>(i);
  Block& b = *w.block;
  if (w.exec != w.now.mask) {  // @p bar.sync: the others go on
    Group rest = w.now;
    rest.mask = w.now.mask & ~w.exec;
    rest.pc = w.pc + 1;
    w.others.push_back(rest);
    w.now.mask = w.exec;
  }
  const Assembly assembly = assemble(w, w.live, Group::at_barrier);
  if (assembly == Assembly::waiting) return Flow::yield;
  if (assembly == Assembly::incomplete || w.passed) {
    report_missing(w, DIVERGENT_BARRIER, w.started);
    w.passed = false;
  }
  int first = __builtin_ctz(w.exec);
  const u32 id = lanes<u32>(w, o.id)[first];
  if (id >= BARRIERS) return stop(w, TRAP);
  Barrier& bar = b.barriers[id];
  bar.expected = o.threads < 0 ? 0 : lanes<u32>(w, o.threads)[first];
  // A counted barrier counts whole warps, the last one too when it is not full.
  bar.arrived += bar.expected && w.exec == w.live ? LANES : __builtin_popcount(w.exec);
  bar.arrivals.join(w.release_clocks());
  forget_taint(w);
  if (reduction_of(i) != NONE) {
    bar.votes += __builtin_popcount(w.preds[o.vote] & w.exec);
    bar.voters += __builtin_popcount(w.exec);
  }
  w.tick();
  if (!waits) {
    release_if_complete(b, id);
    return Flow::next;
  }
  w.now.barrier_id = id;
  Flow flow = park(w, Group::in_barrier, w.pc + 1);
  release_if_complete(b, id);
  return flow;
}

template <Reduction reduction> bool reduces(const Program&, const Ins& i) {
  return reduction_of(i) == reduction;
}

}  // namespace

Flow arrive_and_wait(Warp& w, u32 id, u32 threads) {
  Barrier& barrier = w.block->barriers[id];
  barrier.expected = threads;
  barrier.arrived += __builtin_popcount(w.exec);
  barrier.arrivals.join(w.release_clocks());
  w.tick();
  w.now.barrier_id = id;
  const Flow flow = park(w, Group::in_barrier, w.pc + 1);
  release_if_complete(*w.block, id);
  return flow;
}

Flow leave(Warp& w, u32 lanes_leaving) {
  w.live &= ~lanes_leaving;
  // nvcc has one exit, at the end of the source, to which every return branches.
  const u32 jump = w.now.jump;
  const u32 at = jump && w.program->code[jump].target() + 1 == w.pc ? jump : w.pc;
  for (u32 rest = lanes_leaving; rest; rest &= rest - 1) w.left_at[__builtin_ctz(rest)] = at;
  w.now.mask &= ~lanes_leaving;
  w.block->live -= __builtin_popcount(lanes_leaving);
  if (w.done()) w.block->exit_clocks.join(w.release_clocks());
  if (!w.block->live) end_block_dependency(*w.block);
  if (!w.block->live && !w.block->machine->sampling) {
    check_visitors(*w.block);
    check_bulk_stores(*w.block);
  }
  for (u32 id = 0; id < BARRIERS; ++id) release_if_complete(*w.block, id);
  if (!w.now.mask) return Flow::yield;
  return Flow::next;
}

void add_barriers(Table& t) {
  add(t, "bar.sync", barrier<true>, ">--nN", reduces<NONE>);
  add(t, "bar.arrive", barrier<false>, ">--nN", reduces<NONE>);
  add(t, "bar.red.popc", barrier<true>, "n>pnN", reduces<POPC>);
  add(t, "bar.red.and", barrier<true>, "p>pnN", reduces<AND>);
  add(t, "bar.red.or", barrier<true>, "p>pnN", reduces<OR>);
}

}  // namespace sim
