// mbarrier objects and the bulk copies that complete on them.
//
// A bulk copy lands at once, but only for threads that learn of it through the barrier: anyone
// else who touches the data races with it.
#include <algorithm>

#include "shadow.hpp"

namespace sim {
namespace {

void publish(const Warp& w, MBarrier& b) { b.arriving.join(w.now_for_others()); }

void complete_if_due(MBarrier& b) {
  if (b.pending || b.transactions) return;
  b.phase++;
  b.pending = b.count;
  b.released.join(b.arriving);
  b.arriving = {};
}

// Calls `f` with every executing lane's barrier; lanes with a bad or never initialised one drop
// out.
template <class F> void each_barrier(Warp& w, Access a, F f) {
  drop_misaligned(w, a, SHARED, true);
  if (a.mask) settle_shared(w, a, true);
  for (int l = 0; l < LANES; ++l) {
    if (!(a.mask >> l & 1)) continue;
    auto found = w.block->mbarriers.find(u32(a.at[l]));
    if (found == w.block->mbarriers.end()) {
      Event e = event_at(w, BARRIER_UNINITIALISED, l);
      w.block->machine->report(e);
      continue;
    }
    MBarrier& b = found->second;
    if (!w.ordered(b.creator, l))
      race(w, l, RACE, SHARED, a.at[l], 8, true, true, b.creator_pc, b.creator, w.block->id, false);
    f(l, b);
  }
}

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
    b.creator = w.stamp(l);
    b.creator_pc = w.pc;
    w.block->mbarriers[u32(a.at[l])] = b;
    shared_write(w, l, u32(a.at[l]), 8, false, false, DEFINED);
  }
  return Flow::next;
}

// state: -1: not wanted; count: -1: one; bytes: to expect, -1: none
struct ArriveOperands { i32 state, count, bytes; };

Flow arrive(Warp& w, const Ins& i) {
  const auto o = operands<ArriveOperands>(i);
  each_barrier(w, barrier_address(w, i), [&](int l, MBarrier& b) {
    if (o.state >= 0) lanes<u64>(w, o.state)[l] = b.phase;
    publish(w, b);
    if (o.bytes >= 0) b.transactions += lanes<u32>(w, o.bytes)[l];
    b.pending -= o.count < 0 ? 1 : lanes<u32>(w, o.count)[l];
    complete_if_due(b);
  });
  w.tick();
  return Flow::next;
}

struct TransactionOperands { i32 bytes; };

template <int sign> Flow transactions(Warp& w, const Ins& i) {
  each_barrier(w, barrier_address(w, i), [&](int l, MBarrier& b) {
    b.transactions += sign * i64(lanes<u32>(w, operands<TransactionOperands>(i).bytes)[l]);
    complete_if_due(b);
  });
  return Flow::next;
}

struct WaitOperands {
  i32 done;
  i32 phase;  // a state (64-bit) or a parity (32-bit)
};

template <bool parity> Flow test_wait(Warp& w, const Ins& i) {
  const auto o = operands<WaitOperands>(i);
  u32 done = 0;
  each_barrier(w, barrier_address(w, i), [&](int l, MBarrier& b) {
    const bool over = parity ? (b.phase & 1) != (lanes<u32>(w, o.phase)[l] & 1)
                             : b.phase > lanes<u64>(w, o.phase)[l];
    if (!over) return;
    done |= 1u << l;
    w.learn(b.released);
  });
  if (done) w.tick();  // lanes of this warp that waited are ordered too
  w.preds[o.done] = (w.preds[o.done] & ~w.exec) | done;
  if (done == w.exec) return Flow::next;
  return wait_in_turn(w);  // let those run who are to complete the phase
}

// cp.async's own arrival: what the thread copied so far has landed when it counts.
template <bool counted> Flow arrive_after_copies(Warp& w, const Ins& i) {
  complete_async(w);
  each_barrier(w, barrier_address(w, i), [&](int, MBarrier& b) {
    publish(w, b);
    if (counted) b.pending--;
    complete_if_due(b);
  });
  w.tick();
  return Flow::next;
}

// The target is the address of the access.
struct BulkOperands {
  i32 source, bytes, barrier, source_offset, base, base_bytes, barrier_offset;
};

Flow bulk_copy(Warp& w, const Ins& i) {
  const auto o = operands<BulkOperands>(i);
  Access target = barrier_address(w, i);
  for (int l = 0; l < LANES; ++l) {
    if (!(w.exec >> l & 1)) continue;
    Access one;
    one.mask = 1u << l;
    one.bytes = lanes<u32>(w, o.bytes)[l];
    std::fill(one.at, one.at + LANES, target.at[l]);
    settle_shared(w, one, true);
    const u64 from = lanes<u64>(w, o.source)[l] + i64(o.source_offset);
    i64 index = -1;
    Region* r = w.block->machine->find(from, index);
    const bool inside = r && within(from, one.bytes, r->base, r->size);
    if ((from | target.at[l] | one.bytes) & 15) {
      Event e = event_at(w, MISALIGNED, l);
      e.address = from & 15 ? from : target.at[l];
      e.size = 16;
      e.space = from & 15 ? GLOBAL : SHARED;
      w.block->machine->report(e);
    } else if (!inside) {
      Event e = event_at(w, OUT_OF_BOUNDS, l);
      e.address = from;
      e.size = one.bytes;
      e.space = GLOBAL;
      e.region = r ? index : -1;
      e.region_start = r ? r->base : 0;
      e.region_size = r ? r->size : 0;
      w.block->machine->report(e);
    } else if (one.mask) {
      std::memcpy(w.block->shared.data() + target.at[l], r->data + (from - r->base), one.bytes);
      for (u32 at = 0; at < one.bytes; at += 4)
        shared_write(w, l, u32(target.at[l]) + at, 4, false, false, DEFINED);
      Access read = one;
      read.bytes = 16;
      for (u32 at = 0; at < one.bytes; at += read.bytes) {
        read.at[l] = from + at;
        remember_reads(w, *r, read);
        trace(w, read, READ);
      }
      MemoryCount& c = w.program->source[w.pc];
      c.requests++;
      c.cost += (one.bytes + 31) / 32;
      c.bytes += one.bytes;
    }
    Access where;
    where.mask = 1u << l;
    where.bytes = 8;
    std::fill(where.at, where.at + LANES, (lanes<u32>(w, o.barrier)[l] + u32(o.barrier_offset)));
    each_barrier(w, where, [&](int, MBarrier& b) {
      publish(w, b);
      b.transactions -= one.bytes;
      complete_if_due(b);
    });
  }
  w.tick();
  return Flow::next;
}

}  // namespace

void add_mbarrier(Table& t) {
  t.push_back({"mbarrier.init", init, ">n---a"});
  t.push_back({"mbarrier.arrive", arrive, "W>NN-a"});
  t.push_back({"mbarrier.expect_tx", transactions<1>, ">n---a"});
  t.push_back({"mbarrier.complete_tx", transactions<-1>, ">n---a"});
  t.push_back({"mbarrier.test_wait", test_wait<false>, "p>w--a"});
  t.push_back({"mbarrier.test_wait.parity", test_wait<true>, "p>n--a"});
  t.push_back({"cp.async.mbarrier.arrive", arrive_after_copies<false>, ">----a"});
  t.push_back({"cp.async.mbarrier.arrive.noinc", arrive_after_copies<true>, ">----a"});
  t.push_back({"cp.async.bulk", bulk_copy, ">wnniai"});
}

}  // namespace sim
