// Branches, calls, exits, barriers and the calls that the runtime library would serve.
#include <algorithm>

#include "../checks/dependency.hpp"
#include "../checks/peers.hpp"
#include "../checks/undefined.hpp"
#include "../program/operations.hpp"
#include "../schedule/divergence.hpp"
#include "barriers.hpp"

namespace sim {
namespace {

// Lanes that do not follow a guarded jump go on behind it; the fall-through is a block head.
void leave_behind(Warp& w) {
  if (w.exec == w.now.mask) return;
  ++w.program->guarded[w.pc].splits;
  Group rest = w.now;
  rest.mask = w.now.mask & ~w.exec;
  rest.pc = w.pc + 1;
  rest.rank = u32(w.program->code[w.pc + 1].rank());
  w.others.push_back(rest);
  w.now.mask = w.exec;
}

Flow branch(Warp& w, const Ins& i) {
  leave_behind(w);
  w.pc = u32(i.target());
  return Flow::jumped;
}

// brx.idx
Flow indexed_branch(Warp& w, const Ins& i) {
  const i32 slot = i.input(0);
  check_defined(w, slot, UNDEFINED_BRANCH, false);
  leave_behind(w);
  const size_t others = w.others.size();
  const u32* index = lanes<u32>(w, slot);
  u32 left = w.exec;
  Group side = w.now;
  w.now.mask = 0;
  while (left) {
    const u32 value = index[__builtin_ctz(left)];
    side.mask = 0;
    for (int l = 0; l < LANES; ++l)
      if (left >> l & 1 && index[l] == value) side.mask |= 1u << l;
    left &= ~side.mask;
    side.pc = i.x[std::min<u32>(value, u32(i.targets()) - 1)];  // out of range is undefined in PTX
    side.rank = u32(w.program->code[side.pc].rank());
    w.others.push_back(side);
  }
  w.program->guarded[w.pc].splits += w.others.size() > others + 1;
  return Flow::yield;
}

// A function's registers and lane-private memory. Functions that can call themselves save them when
// called and restore them when they return.
struct Range {
  i32 from, to;
  i32 size() const { return to - from; }
  bool within(u32 most) const { return 0 <= from && from <= to && u32(to) <= most; }
};
struct Frame {
  Range wide, narrow;  // slots of 64-bit and of 32-bit registers
  Range predicates;
  Range bytes;  // of lane-private memory

  size_t size() const {
    return wide.size() * 4 + narrow.size() * 4 + predicates.size() + bytes.size();
  }
};

bool is_frame(const Program& p, const Ins& i) {
  const auto f = operands<Frame>(i);
  return f.wide.within(p.slots) && f.wide.size() % 2 == 0 && f.narrow.within(p.slots) &&
         f.predicates.within(p.predicates) && f.bytes.within(p.local_bytes);
}

template <class F> void each_part(Warp& w, const Frame& f, F each) {
  for (i32 s = f.wide.from; s < f.wide.to; s += 2)
    for (int l = 0; l < LANES; ++l) each(l, lanes<u64>(w, s) + l, 8);
  for (i32 s = f.narrow.from; s < f.narrow.to; ++s)
    for (int l = 0; l < LANES; ++l) each(l, lanes<u32>(w, s) + l, 4);
  for (int l = 0; l < LANES; ++l)
    if (f.bytes.size() > 0)
      each(l, w.local.data() + u64(l) * w.program->local_bytes + f.bytes.from, f.bytes.size());
}

void save_frame(Warp& w, const Frame& f) {
  each_part(w, f, [&](int l, void* at, int bytes) {
    if (w.exec >> l & 1)
      w.saved[l].insert(w.saved[l].end(), static_cast<u8*>(at), static_cast<u8*>(at) + bytes);
  });
  for (int l = 0; l < LANES; ++l)
    if (w.exec >> l & 1)
      for (i32 p = f.predicates.from; p < f.predicates.to; ++p)
        w.saved[l].push_back(w.preds[p] >> l & 1);
}

void restore_frame(Warp& w, const Frame& f) {
  const size_t size = f.size();
  size_t taken[LANES] = {};
  each_part(w, f, [&](int l, void* at, int bytes) {
    if (!(w.exec >> l & 1)) return;
    std::memcpy(at, w.saved[l].data() + w.saved[l].size() - size + taken[l], bytes);
    taken[l] += bytes;
  });
  for (int l = 0; l < LANES; ++l) {
    if (!(w.exec >> l & 1)) continue;
    const u8* bits = w.saved[l].data() + w.saved[l].size() - f.predicates.size();
    for (i32 p = f.predicates.from; p < f.predicates.to; ++p)
      w.preds[p] = (w.preds[p] & ~(1u << l)) | u32(*bits++) << l;
    w.saved[l].resize(w.saved[l].size() - size);
  }
}

constexpr size_t CALL_DEPTH = 512;

Flow stop(Warp& w, EventKind why) {
  Event e = event_at(w, why, __builtin_ctz(w.exec));
  e.arrived = u32(w.now.stack.size());
  e.expected = w.block->machine->stack_bytes;
  w.block->machine->report(e);
  w.block->machine->trapped = true;
  w.block->stopped = true;
  return Flow::yield;
}
Flow trap(Warp& w, const Ins&) { return stop(w, TRAP); }

template <bool recursive> Flow call(Warp& w, const Ins& i);

i64 stack_of(const Program& p, const Ins& call) {
  return operands<BlockOperands>(p.code[call.target()]).stack;
}

// Whether the recursive calls that have not returned, and this one, take more stack than a thread
// has. ptxas knows what all other calls take, and the driver makes room for them.
bool overflows(const Warp& w, const Ins& i) {
  const Program& p = *w.program;
  i64 bytes = stack_of(p, i);
  for (u32 back : w.now.stack)
    if (const Ins& earlier = p.code[back - 1]; earlier.run == call<true>)
      bytes += stack_of(p, earlier);
  return bytes > i64(w.block->machine->stack_bytes);
}

template <bool recursive> Flow call(Warp& w, const Ins& i) {
  leave_behind(w);
  const size_t depth = w.now.stack.size() + 1;
  if (depth > CALL_DEPTH) return trap(w, i);
  if (recursive && overflows(w, i)) return stop(w, STACK_OVERFLOW);
  if (recursive) save_frame(w, operands<Frame>(i));
  w.now.stack.push_back(w.pc + 1);
  w.pc = u32(i.target());
  return Flow::jumped;
}

template <bool recursive> Flow ret(Warp& w, const Ins& i) {
  if (w.now.stack.empty()) return leave(w, w.exec);
  if (recursive)
    for (int l = 0; l < LANES; ++l)  // nobody saved a frame: the call did not know this function
      if (w.exec >> l & 1 && w.saved[l].size() < operands<Frame>(i).size()) return trap(w, i);
  leave_behind(w);
  if (recursive) restore_frame(w, operands<Frame>(i));
  w.pc = w.now.stack.back();
  w.now.stack.pop_back();
  w.now.rank = u32(w.program->code[w.pc].rank());
  return Flow::jumped;
}

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
      e.other_pc = first->pc - 1;
      b.machine->report(e);
      w.pc = pc;
      return;
    }
}

void release_if_complete(Block& b, u32 id) {
  Barrier& barrier = b.barriers[id];
  if (!barrier.arrived) return;
  u32 expected = barrier.expected ? barrier.expected : b.live;
  if (barrier.arrived < expected) return;
  if (!id && !barrier.expected) report_mixed(b);
  // A barrier of all threads waits for no thread that has left: it is ordered after their exit.
  if (!barrier.expected) barrier.arrivals.join(b.exited);
  for (Warp& w : b.warps)
    for (Group& g : w.others)
      if (g.wait == Group::in_barrier && g.barrier_id == id) {
        g.wait = Group::ready;
        deliver(w, g, barrier);
        if (id < BARRIERS) w.learn(barrier.arrivals);
        else w.warpgroup = barrier.arrivals;
      }
  barrier = {};
}

Flow exit_lanes(Warp& w, const Ins&) { return leave(w, w.exec); }

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
  if (id >= BARRIERS) return trap(w, i);
  Barrier& bar = b.barriers[id];
  bar.expected = o.threads < 0 ? 0 : lanes<u32>(w, o.threads)[first];
  // A counted barrier counts whole warps, the last one too when it is not full.
  bar.arrived += bar.expected && w.exec == w.live ? LANES : __builtin_popcount(w.exec);
  bar.arrivals.join(w.now_for_others());
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

// Jumps go to the heads of basic blocks, and where they may fall through there is one too.
bool is_block(const Program& p, i64 at) {
  return u64(at) < p.code.size() && p.code[at].run == block_head;
}
bool falls_into_block(const Program& p, const Ins& i) {
  return is_block(p, &i - p.code.data() + 1);
}

Flow assertion(Warp& w, const Ins&) { return stop(w, ASSERTION); }

}  // namespace

Flow meet(Warp& w, u32 id, u32 threads) {
  Barrier& barrier = w.block->barriers[id];
  barrier.expected = threads;
  barrier.arrived += __builtin_popcount(w.exec);
  barrier.arrivals.join(w.now_for_others());
  w.tick();
  w.now.barrier_id = id;
  const Flow flow = park(w, Group::in_barrier, w.pc + 1);
  release_if_complete(*w.block, id);
  return flow;
}

Flow leave(Warp& w, u32 lanes_leaving) {
  w.live &= ~lanes_leaving;
  w.now.mask &= ~lanes_leaving;
  w.block->live -= __builtin_popcount(lanes_leaving);
  if (w.done()) w.block->exited.join(w.now_for_others());
  if (!w.block->live) end_block_dependency(*w.block);
  if (!w.block->live && !w.block->machine->sampling) check_visitors(*w.block);
  for (u32 id = 0; id < BARRIERS; ++id) release_if_complete(*w.block, id);
  if (!w.now.mask) return Flow::yield;
  return Flow::next;
}

void add_control(Table& t) {
  t.push_back({"bra", branch, ">", [](const Program& p, const Ins& i) {
                 return is_block(p, i.target()) && falls_into_block(p, i);
               }});
  t.push_back({"brx", indexed_branch, ">-n", [](const Program& p, const Ins& i) {
                 return falls_into_block(p, i) && std::all_of(i.x, i.x + i.targets(), [&](i32 at) {
                          return is_block(p, at);
                        });
               }});
  t.push_back({"call", call<false>, ">", [](const Program& p, const Ins& i) {
                 return is_block(p, i.target()) && falls_into_block(p, i);
               }});
  t.push_back({"call.recursive", call<true>, ">iiiiiiii", [](const Program& p, const Ins& i) {
                 return is_block(p, i.target()) && falls_into_block(p, i) && is_frame(p, i);
               }});
  t.push_back({"ret", ret<false>, ">", falls_into_block});
  t.push_back({"ret.recursive", ret<true>, ">iiiiiiii", [](const Program& p, const Ins& i) {
                 return falls_into_block(p, i) && is_frame(p, i);
               }});
  t.push_back({"exit", exit_lanes, ">"});
  t.push_back({"never_set.narrow", never_set, "n>"});
  t.push_back({"never_set.wide", never_set, "w>"});
  t.push_back({"trap", trap, ">"});
  t.push_back({"bar.sync", barrier<true>, ">--nN", reduces<NONE>});
  t.push_back({"bar.arrive", barrier<false>, ">--nN", reduces<NONE>});
  t.push_back({"bar.red.popc", barrier<true>, "n>pnN", reduces<POPC>});
  t.push_back({"bar.red.and", barrier<true>, "p>pnN", reduces<AND>});
  t.push_back({"bar.red.or", barrier<true>, "p>pnN", reduces<OR>});
  t.push_back({"call.__assertfail", assertion, ">iii"});
}

}  // namespace sim
