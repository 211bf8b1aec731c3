// Branches, calls, exits, barriers and the calls that the runtime library would serve.
#include <algorithm>

#include "lanes.hpp"

namespace sim {
namespace {

// Lanes that do not follow a guarded jump go on behind it; the fall-through is a block head.
void leave_behind(Warp& w) {
  if (w.exec == w.now.mask) return;
  Group rest = w.now;
  rest.mask = w.now.mask & ~w.exec;
  rest.pc = w.pc + 1;
  rest.rank = u32(w.program->code[w.pc + 1].imm);
  w.others.push_back(rest);
  w.now.mask = w.exec;
}

// imm: target
Flow branch(Warp& w, const Ins& i) {
  leave_behind(w);
  w.pc = u32(i.imm);
  return Flow::jumped;
}

// brx.idx: o[1] the index, x the targets
Flow indexed_branch(Warp& w, const Ins& i) {
  check_defined(w, i.o[1], UNDEFINED_BRANCH, false);
  leave_behind(w);
  const u32* index = lanes<u32>(w, i.o[1]);
  u32 left = w.exec;
  Group side = w.now;
  w.now.mask = 0;
  while (left) {
    const u32 value = index[__builtin_ctz(left)];
    side.mask = 0;
    for (int l = 0; l < LANES; ++l)
      if (left >> l & 1 && index[l] == value) side.mask |= 1u << l;
    left &= ~side.mask;
    side.pc = i.x[std::min<u32>(value, u32(i.imm) - 1)];  // out of range is undefined in PTX
    side.rank = u32(w.program->code[side.pc].imm);
    w.others.push_back(side);
  }
  return Flow::yield;
}

// A function's registers and lane-private memory: o[0..1] 64-bit slots, o[2..3] 32-bit slots,
// o[4..5] predicates, o[6..7] bytes, each [from, to). Functions that can call themselves save
// them when called and restore them when they return.
size_t frame_bytes(const Ins& i) {
  return (i.o[1] - i.o[0]) * 4 + (i.o[3] - i.o[2]) * 4 + (i.o[7] - i.o[6]) + (i.o[5] - i.o[4]);
}

bool is_frame(const Program& p, const Ins& i) {
  const auto part = [&](int k, u32 most) {
    return 0 <= i.o[k] && i.o[k] <= i.o[k + 1] && u32(i.o[k + 1]) <= most;
  };
  return part(0, p.slots) && (i.o[1] - i.o[0]) % 2 == 0 && part(2, p.slots) &&
         part(4, p.predicates) && part(6, p.local_bytes);
}

template <class F> void frame(Warp& w, const Ins& i, F each) {
  for (i32 s = i.o[0]; s < i.o[1]; s += 2)
    for (int l = 0; l < LANES; ++l) each(l, lanes<u64>(w, s) + l, 8);
  for (i32 s = i.o[2]; s < i.o[3]; ++s)
    for (int l = 0; l < LANES; ++l) each(l, lanes<u32>(w, s) + l, 4);
  for (int l = 0; l < LANES; ++l)
    if (i.o[7] > i.o[6])
      each(l, w.local.data() + u64(l) * w.program->local_bytes + i.o[6], i.o[7] - i.o[6]);
}

void save_frame(Warp& w, const Ins& i) {
  frame(w, i, [&](int l, void* at, int bytes) {
    if (w.exec >> l & 1)
      w.saved[l].insert(w.saved[l].end(), static_cast<u8*>(at), static_cast<u8*>(at) + bytes);
  });
  for (int l = 0; l < LANES; ++l)
    if (w.exec >> l & 1)
      for (i32 p = i.o[4]; p < i.o[5]; ++p) w.saved[l].push_back(w.preds[p] >> l & 1);
}

void restore_frame(Warp& w, const Ins& i) {
  const size_t size = frame_bytes(i);
  size_t taken[LANES] = {};
  frame(w, i, [&](int l, void* at, int bytes) {
    if (!(w.exec >> l & 1)) return;
    std::memcpy(at, w.saved[l].data() + w.saved[l].size() - size + taken[l], bytes);
    taken[l] += bytes;
  });
  for (int l = 0; l < LANES; ++l) {
    if (!(w.exec >> l & 1)) continue;
    const u8* bits = w.saved[l].data() + w.saved[l].size() - (i.o[5] - i.o[4]);
    for (i32 p = i.o[4]; p < i.o[5]; ++p)
      w.preds[p] = (w.preds[p] & ~(1u << l)) | u32(*bits++) << l;
    w.saved[l].resize(w.saved[l].size() - size);
  }
}

constexpr size_t CALL_DEPTH = 512;

Flow trap(Warp& w, const Ins&) {
  w.block->machine->report(event_at(w, TRAP, __builtin_ctz(w.exec)));
  w.block->machine->trapped = true;
  w.block->stopped = true;
  return Flow::yield;
}

// imm: target
template <bool recursive> Flow call(Warp& w, const Ins& i) {
  leave_behind(w);
  const size_t depth = w.now.stack.size() + 1;
  if (depth > CALL_DEPTH) return trap(w, i);
  if (recursive && depth * frame_bytes(i) > MAX_LOCAL_BYTES)
    return trap(w, i);  // the stack is full
  if (recursive) save_frame(w, i);
  w.now.stack.push_back(w.pc + 1);
  w.pc = u32(i.imm);
  return Flow::jumped;
}

template <bool recursive> Flow ret(Warp& w, const Ins& i) {
  if (w.now.stack.empty()) return leave(w, w.exec);
  if (recursive)
    for (int l = 0; l < LANES; ++l)  // nobody saved a frame: the call did not know this function
      if (w.exec >> l & 1 && w.saved[l].size() < frame_bytes(i)) return trap(w, i);
  leave_behind(w);
  if (recursive) restore_frame(w, i);
  w.pc = w.now.stack.back();
  w.now.stack.pop_back();
  w.now.rank = u32(w.program->code[w.pc].imm);
  return Flow::jumped;
}

enum Reduction : i64 { NONE, POPC, AND, OR };

// What bar.red gives every thread that waited: o[0] a register for popc, a predicate otherwise.
void deliver(Warp& w, const Group& g, const Barrier& barrier) {
  const Ins& i = w.program->code[g.pc - 1];
  if (i.imm == NONE) return;
  if (i.imm == POPC) {
    u32* d = lanes<u32>(w, i.o[0]);
    for (int l = 0; l < LANES; ++l)
      if (g.mask >> l & 1) d[l] = barrier.votes;
    return;
  }
  const bool result = i.imm == OR ? barrier.votes > 0 : barrier.votes == barrier.voters;
  w.preds[i.o[0]] = (w.preds[i.o[0]] & ~g.mask) | (result ? g.mask : 0);
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
  for (Warp& w : b.warps)
    for (Group& g : w.others)
      if (g.wait == Group::in_barrier && g.barrier_id == id) {
        g.wait = Group::ready;
        deliver(w, g, barrier);
        for (u32 k = 0; k < 32; ++k)
          if (k != w.index) w.known[k] = std::max(w.known[k], barrier.clocks[k]);
      }
  barrier = {};
}

Flow exit_lanes(Warp& w, const Ins&) { return leave(w, w.exec); }

// o[0] result, o[1] vote (bar.red), o[2] barrier id (slot), o[3] thread count (slot or -1);
// imm: reduction
template <bool waits> Flow barrier(Warp& w, const Ins& i) {
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
    const u32 lanes_here = std::min<u32>(LANES, b.threads - w.index * LANES);
    report_missing(w, DIVERGENT_BARRIER, lanes_here == 32 ? ALL : (1u << lanes_here) - 1);
    w.passed = false;
  }
  int first = __builtin_ctz(w.exec);
  const u32 id = lanes<u32>(w, i.o[2])[first];
  if (id >= BARRIERS) return trap(w, i);
  Barrier& bar = b.barriers[id];
  bar.expected = i.o[3] < 0 ? 0 : lanes<u32>(w, i.o[3])[first];
  // A counted barrier counts whole warps, the last one too when it is not full.
  bar.arrived += bar.expected && w.exec == w.live ? LANES : __builtin_popcount(w.exec);
  for (u32 k = 0; k < 32; ++k) bar.clocks[k] = std::max(bar.clocks[k], w.known[k]);
  bar.clocks[w.index] = w.clock();
  if (i.imm != NONE) {
    bar.votes += __builtin_popcount(w.preds[i.o[1]] & w.exec);
    bar.voters += __builtin_popcount(w.exec);
  }
  w.known[w.index]++;
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
  return i.imm == reduction;
}

// Jumps go to the heads of basic blocks, and where they may fall through there is one too.
bool is_block(const Program& p, i64 at) {
  return u64(at) < p.code.size() && p.code[at].run == block_head;
}
bool falls_into_block(const Program& p, const Ins& i) {
  return is_block(p, &i - p.code.data() + 1);
}

Flow assertion(Warp& w, const Ins&) {
  w.block->machine->report(event_at(w, ASSERTION, __builtin_ctz(w.exec)));
  w.block->machine->trapped = true;
  w.block->stopped = true;
  return Flow::yield;
}

}  // namespace

Flow leave(Warp& w, u32 lanes_leaving) {
  w.live &= ~lanes_leaving;
  w.now.mask &= ~lanes_leaving;
  w.block->live -= __builtin_popcount(lanes_leaving);
  for (u32 id = 0; id < BARRIERS; ++id) release_if_complete(*w.block, id);
  if (!w.now.mask) return Flow::yield;
  return Flow::next;
}

void add_control(Table& t) {
  t.push_back({"bra", branch, ">", [](const Program& p, const Ins& i) {
                 return is_block(p, i.imm) && falls_into_block(p, i);
               }});
  t.push_back({"brx", indexed_branch, ">-n", [](const Program& p, const Ins& i) {
                 return falls_into_block(p, i) &&
                        std::all_of(i.x, i.x + i.imm, [&](i32 at) { return is_block(p, at); });
               }});
  t.push_back({"call", call<false>, ">", [](const Program& p, const Ins& i) {
                 return is_block(p, i.imm) && falls_into_block(p, i);
               }});
  t.push_back({"call.recursive", call<true>, ">iiiiiiii", [](const Program& p, const Ins& i) {
                 return is_block(p, i.imm) && falls_into_block(p, i) && is_frame(p, i);
               }});
  t.push_back({"ret", ret<false>, ">", falls_into_block});
  t.push_back({"ret.recursive", ret<true>, ">iiiiiiii", [](const Program& p, const Ins& i) {
                 return falls_into_block(p, i) && is_frame(p, i);
               }});
  t.push_back({"exit", exit_lanes, ">"});
  t.push_back({"trap", trap, ">"});
  t.push_back({"bar.sync", barrier<true>, ">--nN", reduces<NONE>});
  t.push_back({"bar.arrive", barrier<false>, ">--nN", reduces<NONE>});
  t.push_back({"bar.red.popc", barrier<true>, "n>pnN", reduces<POPC>});
  t.push_back({"bar.red.and", barrier<true>, "p>pnN", reduces<AND>});
  t.push_back({"bar.red.or", barrier<true>, "p>pnN", reduces<OR>});
  t.push_back({"call.__assertfail", assertion, ">iii"});
}

}  // namespace sim
