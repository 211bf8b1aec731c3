#include "divergence.hpp"

#include <algorithm>

#include "../machine/machine.hpp"
#include "../program/operations.hpp"

namespace sim {
namespace {

bool before(const Group& a, const Group& b) {
  return a.stack.size() != b.stack.size() ? a.stack.size() > b.stack.size() : a.rank < b.rank;
}

bool same_place(const Group& a, const Group& b) { return a.pc == b.pc && a.stack == b.stack; }

void take(Warp& w, size_t k) {
  w.now = w.others[k];
  w.now.wait = Group::ready;
  w.pc = w.now.pc;
  w.turns = 0;
  w.others.erase(w.others.begin() + k);
}

// At a block head: merge with groups standing here, then let an earlier one go first.
bool reconverge(Warp& w) {
  w.now.pc = w.pc;
  for (size_t k = 0; k < w.others.size();) {
    if (w.others[k].wait == Group::ready && same_place(w.others[k], w.now)) {
      w.now.mask |= w.others[k].mask;
      w.others.erase(w.others.begin() + k);
    } else {
      ++k;
    }
  }
  if (w.others.empty()) w.fair = false;
  if (w.fair) return false;
  size_t best = w.others.size();
  for (size_t k = 0; k < w.others.size(); ++k)
    if (w.others[k].wait == Group::ready && before(w.others[k], w.now) &&
        (best == w.others.size() || before(w.others[k], w.others[best])))
      best = k;
  if (best == w.others.size()) return false;
  Group mine = w.now;
  take(w, best);
  w.others.push_back(mine);
  return true;
}

}  // namespace

bool pick(Warp& w) {
  if (!w.live) return false;
  size_t best = w.others.size();
  for (size_t k = 0; k < w.others.size(); ++k)
    if (w.others[k].wait == Group::ready &&
        (best == w.others.size() || before(w.others[k], w.others[best])))
      best = k;
  if (best == w.others.size()) {  // nobody can bring the lanes that a warp-level operation misses
    for (size_t k = 0; k < w.others.size() && best == w.others.size(); ++k)
      if (w.others[k].wait != Group::in_barrier) best = k;
    if (best == w.others.size()) return false;
    w.forced = true;
  }
  take(w, best);
  return true;
}

bool take_turns(Warp& w) {
  const auto ready = [](const Group& g) { return g.wait == Group::ready; };
  const size_t next = std::find_if(w.others.begin(), w.others.end(), ready) - w.others.begin();
  if (next == w.others.size()) return false;
  w.fair = true;
  w.now.pc = w.pc;
  w.others.push_back(w.now);
  take(w, next);
  return true;
}

Flow park(Warp& w, Group::Wait why, u32 pc) {
  w.now.pc = pc;
  w.now.wait = why;
  w.others.push_back(w.now);
  w.now.mask = 0;
  w.now.wait = Group::ready;
  return Flow::yield;
}

Flow block_head(Warp& w, const Ins& i) {
  w.now.rank = u32(i.rank());
  if (!w.others.empty()) {
    if (reconverge(w)) return Flow::jumped;
    for (const Group& g : w.others)
      w.passed |= g.wait == Group::at_barrier && i.vec && g.stack.size() == w.now.stack.size() &&
                  g.rank != w.now.rank && !w.program->reaches(w.now.rank, g.rank);
  }
  w.fuel -= operands<BlockOperands>(i).fuel;
  if (w.fuel < 0) return Flow::yield;
  w.repeats = w.polls == w.pc;
  w.polls = ~0u;
  w.head = w.pc;
  if (w.repeats) return Flow::next;
  FlowCount& c = w.program->blocks[w.pc];
  c.warps++;
  c.lanes += __builtin_popcount(w.now.mask);
  return Flow::next;
}

Assembly assemble(Warp& w, u32 members, Group::Wait wait) {
  w.now.pc = w.pc;
  for (size_t k = 0; k < w.others.size();) {
    Group& g = w.others[k];
    if (g.wait == wait && g.pc == w.pc && g.stack == w.now.stack) {
      w.now.mask |= g.mask;
      w.exec |= g.mask;
      w.others.erase(w.others.begin() + k);
    } else {
      ++k;
    }
  }
  const bool forced = w.forced;
  w.forced = false;
  if (!(members & w.live & ~w.exec)) return Assembly::complete;
  if (forced) return Assembly::incomplete;
  park(w, wait, w.pc);
  return Assembly::waiting;
}

void report_missing(Warp& w, EventKind kind, u32 members) {
  Event e = event_at(w, kind, __builtin_ctz(w.exec));
  const u32 missing = members & ~w.exec;
  const int lane = __builtin_ctz(missing ? missing : w.exec);
  for (const Group& g : w.others)
    if (g.mask >> lane & 1) e.other_pc = g.wait == Group::in_barrier ? g.pc - 1 : g.pc;
  if (missing && !(w.live >> lane & 1)) {
    e.other_pc = w.left_at[lane];
    if (kind == DIVERGENT_BARRIER) e.kind = LEFT_BEFORE_BARRIER;
  }
  if (kind == DIVERGENT_BARRIER)
    set_details(e, {__builtin_popcount(w.exec), __builtin_popcount(members)});
  else set_details(e, {members, w.exec});
  e.other_thread = thread_at(*w.block->machine, w.index * LANES + lane);
  w.block->machine->report(e);
}

// What all lanes of a warp must execute together does go ahead without those that cannot come.
bool come_together(Warp& w, Flow& flow) {
  if (w.exec == ALL) return true;
  if (assemble(w, w.live, Group::warp_sync) == Assembly::waiting) {
    flow = Flow::yield;
    return false;
  }
  if (w.exec != ALL) report_missing(w, PART_OF_A_WARP, ALL);
  return true;
}

void add_block_heads(Table& t) {
  add(t, "block", block_head, ">ii", [](const Program& p, const Ins& i) {
    const auto o = operands<BlockOperands>(i);
    return o.fuel > 0 && o.stack >= 0 && u64(i.rank()) < p.ranks;
  });
}

}  // namespace sim
