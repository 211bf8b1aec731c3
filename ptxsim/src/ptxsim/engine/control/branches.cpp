#include "branches.hpp"

#include <algorithm>

#include "../checks/undefined.hpp"
#include "../machine/machine.hpp"
#include "../program/operations.hpp"
#include "../schedule/divergence.hpp"
#include "barriers.hpp"

namespace sim {

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

Flow stop(Warp& w, EventKind why, u64 address) {
  Event e = event_at(w, why, __builtin_ctz(w.exec));
  e.address = address;
  e.space = GLOBAL;
  set_details(e, {i64(w.now.stack.size()), w.block->machine->stack_bytes});  // of a full stack
  return stop(w, e);
}

Flow stop(Warp& w, const Event& why) {
  w.block->machine->report(why);
  w.block->machine->trapped = true;
  w.block->stopped = true;
  return Flow::yield;
}

bool is_block(const Program& p, i64 at) {
  return u64(at) < p.code.size() && p.code[at].run == block_head;
}

bool falls_into_block(const Program& p, const Ins& i) {
  return is_block(p, &i - p.code.data() + 1);
}

namespace {

Flow branch(Warp& w, const Ins& i) {
  leave_behind(w);
  w.now.jump = w.pc;
  w.pc = u32(i.target());
  return Flow::jumped;
}

// What follows is undefined in PTX.
Flow leave_table(Warp& w, const Ins& i, int lane, u32 index) {
  Event e = event_at(w, BRANCH_OUT_OF_TABLE, lane);
  set_details(e, {index, i64(i.targets())});
  return stop(w, e);
}

// brx.idx
Flow indexed_branch(Warp& w, const Ins& i) {
  const i32 slot = i.input(0);
  check_defined(w, slot, UNDEFINED_BRANCH, false);
  const u32* index = lanes<u32>(w, slot);
  for (int l = 0; l < LANES; ++l)
    if (w.exec >> l & 1 && index[l] >= i.targets() && !(w.tainted && undefined_bits(w, slot, l)))
      return leave_table(w, i, l, index[l]);
  leave_behind(w);
  const size_t others = w.others.size();
  u32 left = w.exec;
  Group side = w.now;
  w.now.mask = 0;
  while (left) {
    const u32 value = index[__builtin_ctz(left)];
    side.mask = 0;
    for (int l = 0; l < LANES; ++l)
      if (left >> l & 1 && index[l] == value) side.mask |= 1u << l;
    left &= ~side.mask;
    side.pc = i.x[std::min<u32>(value, u32(i.targets()) - 1)];  // it may be undefined
    side.rank = u32(w.program->code[side.pc].rank());
    w.others.push_back(side);
  }
  w.program->guarded[w.pc].splits += w.others.size() > others + 1;
  return Flow::yield;
}

Flow exit_lanes(Warp& w, const Ins&) { return leave(w, w.exec); }

Flow trap(Warp& w, const Ins&) { return stop(w, TRAP); }

// __assertfail, a call that the runtime library would serve
Flow assertion(Warp& w, const Ins&) { return stop(w, ASSERTION); }

}  // namespace

void add_branches(Table& t) {
  add(t, "bra", branch, ">", [](const Program& p, const Ins& i) {
    return is_block(p, i.target()) && falls_into_block(p, i);
  });
  add(t, "brx", indexed_branch, ">-n", [](const Program& p, const Ins& i) {
    return falls_into_block(p, i) &&
           std::all_of(i.x, i.x + i.targets(), [&](i32 at) { return is_block(p, at); });
  });
  add(t, "exit", exit_lanes, ">");
  add(t, "trap", trap, ">");
  add(t, "call.__assertfail", assertion, ">iiiiii");
}

}  // namespace sim
