// mbarrier objects: arrivals, transactions, waits.

#include "mbarrier.hpp"

#include <algorithm>

#include "../checks/async_proxy.hpp"
#include "../checks/release_acquire.hpp"
#include "../checks/peers.hpp"
#include "../checks/shared_races.hpp"
#include "../checks/undefined.hpp"
#include "../program/operations.hpp"
#include "../schedule/waiting.hpp"
#include "cp_async.hpp"

namespace sim {
namespace {

Access barrier_address(Warp& w, const Ins& i) {
  Access a;
  resolve_addresses(w, i, a);
  for (u64& at : a.at) at &= OFFSET_MASK;
  a.bytes = 8;
  return a;
}

struct InitOperands { i32 count; };

Flow init(Warp& w, const Ins& i) {
  Access a = barrier_address(w, i);
  drop_misaligned(w, a, SHARED, true);
  if (a.mask) settle_shared(w, a, true);
  for (int l = 0; l < LANES; ++l) {
    if (!(a.mask >> l & 1)) continue;
    MBarrier b{};
    b.count = b.pending = lanes<u32>(w, operands<InitOperands>(i).count)[l];
    b.creator = w.epoch(l);
    b.creator_pc = w.pc;
    MBarrier& there = w.block->mbarriers[u32(a.at[l])];
    // As with a store of the same value: many threads may make the same barrier, which nobody used.
    const bool same = there.creator && there.count == b.count && there.pending == b.count &&
                      !there.transactions && !there.phase;
    shared_write(w, l, u32(a.at[l]), 8, same, false, DEFINED);
    there = b;
  }
  return Flow::next;
}

// fence.mbarrier_init: other threads, and the async proxy, see the barriers that these lanes made.
Flow show_inits(Warp& w, const Ins&) {
  for (auto& [address, b] : w.home->mbarriers)
    if (const u32 lane = b.creator.lane(); b.creator.warp() == w.index && w.exec >> lane & 1)
      b.shown = w.epoch(int(lane));
  return Flow::next;
}

Flow invalidate(Warp& w, const Ins& i) {
  const Access a = barrier_address(w, i);
  each_barrier(w, a, [](int, MBarrier&) {});  // there must be one
  for (u32 rest = a.mask; rest; rest &= rest - 1)
    w.block->mbarriers.erase(u32(a.at[__builtin_ctz(rest)]));
  return Flow::next;
}

// state: -1: not wanted; count: -1: one; bytes: to expect, -1: none
struct ArriveOperands { i32 state, count, bytes; };

// A relaxed arrival releases nothing but what a fence before it covers.
void release_relaxed(const Warp& w, MBarrier& b) {
  b.arriving.join(w.visits() ? acquired(release_clock(w, w.clocks.device_fence), *w.block)
                             : w.fence_clocks());
}

void announce(MBarrier& b, u32 bytes) {
  b.transactions += bytes;
  b.announced += bytes;
}

// drops: the arrivals are missing from the phases to come, too
// completes: they may be the last of their phase
template <bool drops, bool relaxed, bool completes = true> Flow arrive(Warp& w, const Ins& i) {
  const auto o = operands<ArriveOperands>(i);
  each_barrier(w, barrier_address(w, i), [&](int l, MBarrier& b) {
    if (o.state >= 0) lanes<u64>(w, o.state)[l] = b.phase;
    relaxed ? release_relaxed(w, b) : release(w, b);
    const u32 count = o.count < 0 ? 1 : lanes<u32>(w, o.count)[l];
    if (o.bytes >= 0) announce(b, lanes<u32>(w, o.bytes)[l]);
    b.pending -= count;
    if (drops) b.count -= count;
    if (!completes && !b.pending && !b.transactions)
      w.block->machine->report(event_at(w, COMPLETED_BY_NO_COMPLETE, l));
    complete_if_due(w, b);
  });
  w.release();
  return Flow::next;
}

struct TransactionOperands { i32 bytes; };

template <bool expects> Flow transactions(Warp& w, const Ins& i) {
  each_barrier(w, barrier_address(w, i), [&](int l, MBarrier& b) {
    const u32 bytes = lanes<u32>(w, operands<TransactionOperands>(i).bytes)[l];
    if (expects) announce(b, bytes);
    else b.transactions -= bytes;
    complete_if_due(w, b);
  });
  return Flow::next;
}

// What copies wrote is there for those who waited, and their sources have been read.
void land(Block& block, u32 shift, MBarrier& b) {
  for (const Landing& each : b.landed) {
    for (u32 at = each.to.start; at < each.to.start + each.to.size; at += 1u << shift)
      block.cells[at >> shift].pending = 0;
    if (!block.cluster || !each.copy.block || !each.to.size) continue;
    for (Block* from : block.cluster->blocks)
      if (from->linear + 1 == each.copy.block) finish_copy(*from, each.copy);
  }
  b.landed.clear();
}

struct WaitOperands {
  i32 done;
  i32 phase;  // a state (64-bit) or a parity (32-bit)
};

template <bool parity, bool relaxed> Flow test_wait(Warp& w, const Ins& i) {
  const auto o = operands<WaitOperands>(i);
  u32 done = 0;
  Look look{.pc = w.pc, .seen = w.exec, .changes = w.block->machine->changes};
  const Access a = barrier_address(w, i);
  each_barrier(w, a, [&](int l, MBarrier& b) {
    const bool over = parity ? (b.phase & 1) != (lanes<u32>(w, o.phase)[l] & 1)
                             : b.phase > lanes<u64>(w, o.phase)[l];
    if (!over) {
      look.mbarrier = a.at[l];
      return;
    }
    done |= 1u << l;
    if (relaxed) w.clocks.flag_clock.join(b.released);
    else if (!w.visits()) w.acquire_own(b.released);
    land(*w.block, w.program->shared_shift, b);
  });
  w.preds[o.done] = (w.preds[o.done] & ~w.exec) | done;
  if (done == w.exec) return Flow::next;
  looks_again(w, look);
  return wait_in_turn(w);  // let those run who are to complete the phase
}

// cp.async's own arrival: what the thread copied so far has landed for those who wait.
template <bool counted> Flow arrive_after_copies(Warp& w, const Ins& i) {
  each_barrier(w, barrier_address(w, i), [&](int l, MBarrier& b) {
    land_at_mbarrier(w, l, b);
    release(w, b);
    if (counted) b.pending--;
    complete_if_due(w, b);
  });
  w.release();
  return Flow::next;
}

}  // namespace

bool arrives_after_copies(const Ins& i) {
  return i.run == arrive_after_copies<false> || i.run == arrive_after_copies<true>;
}

void release(const Warp& w, MBarrier& b) {
  b.arriving.join(w.visits() ? acquired(release_clock(w), *w.block) : w.release_clocks());
}

void release_copy(const Warp& w, MBarrier& b) {
  if (w.visits()) b.arriving.join(acquired(own_time(w), *w.block));
  else release(w, b);
}

void complete_if_due(Warp& w, MBarrier& b) {
  ++w.block->machine->changes;
  if (b.pending || b.transactions) return;
  b.phase++;
  b.pending = b.count;
  b.announced = 0;
  b.released.join(b.arriving);
  b.arriving = {};
  b.landed.insert(b.landed.end(), b.landing.begin(), b.landing.end());
  b.landing.clear();
}

MBarrier* barrier_at(Warp& w, int lane, u32 address) {
  auto found = w.block->mbarriers.find(address);
  if (found == w.block->mbarriers.end() || found->second.destroyed) {
    if (block_has_started(w)) w.block->machine->report(event_at(w, BARRIER_UNINITIALISED, lane));
    return nullptr;
  }
  MBarrier& b = found->second;
  if (block_has_started(w) && !in_order(w, lane, {w.block->linear + 1, b.creator, b.creator_pc}))
    race(w, lane, RACE, address, 8, true, {w.block->linear + 1, b.creator, b.creator_pc}, true);
  return &b;
}

void add_mbarrier(Table& t) {
  add(t, "mbarrier.init", init, ">n---a");
  add(t, "fence.mbarrier_init", show_inits, ">");
  add(t, "mbarrier.inval", invalidate, ">----a");
  add(t, "mbarrier.arrive", arrive<false, false>, "W>NN-a");
  add(t, "mbarrier.arrive_drop", arrive<true, false>, "W>NN-a");
  add(t, "mbarrier.arrive.noComplete", arrive<false, false, false>, "W>NN-a");
  add(t, "mbarrier.arrive_drop.noComplete", arrive<true, false, false>, "W>NN-a");
  add(t, "mbarrier.arrive.relaxed", arrive<false, true>, "W>NN-a");
  add(t, "mbarrier.arrive_drop.relaxed", arrive<true, true>, "W>NN-a");
  add(t, "mbarrier.expect_tx", transactions<true>, ">n---a");
  add(t, "mbarrier.complete_tx", transactions<false>, ">n---a");
  add(t, "mbarrier.test_wait", test_wait<false, false>, "p>w--a");
  add(t, "mbarrier.test_wait.parity", test_wait<true, false>, "p>n--a");
  add(t, "mbarrier.test_wait.relaxed", test_wait<false, true>, "p>w--a");
  add(t, "mbarrier.test_wait.parity.relaxed", test_wait<true, true>, "p>n--a");
  add(t, "cp.async.mbarrier.arrive", arrive_after_copies<false>, ">----a");
  add(t, "cp.async.mbarrier.arrive.noinc", arrive_after_copies<true>, ">----a");
}

}  // namespace sim
