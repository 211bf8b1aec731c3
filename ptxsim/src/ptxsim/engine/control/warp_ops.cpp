// Operations across the lanes of a warp: shuffles, votes, matches, reductions, __syncwarp.
#include <algorithm>
#include <bit>

#include "../checks/undefined.hpp"
#include "../machine/machine.hpp"
#include "../program/operations.hpp"
#include "../schedule/divergence.hpp"

namespace sim {
namespace {

void report_mask(Warp& w, EventKind kind, int lane, u32 mask) {
  Event e = event_at(w, kind, lane);
  set_details(e, {mask, w.exec});
  w.block->machine->report(e);
}

// Every lane must stand in the mask that it gives, and lanes that never were are better not named.
void check_masks(Warp& w, i32 slot, bool reads_others) {
  const u32* masks = lanes<u32>(w, slot);
  u32 named = 0;
  for (u32 rest = w.exec; rest; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    named |= masks[l];
    if (masks[l] >> l & 1) continue;
    report_mask(w, MASK_WITHOUT_CALLER, l, masks[l]);
    break;
  }
  if (reads_others && named & ~w.started)
    report_mask(w, MASK_BEYOND_BLOCK, __builtin_ctz(w.exec), named);
}

// Lanes that have come to the same operation, with the same mask, at other places: from sm_70 on
// they meet there, as in both sides of a branch.
template <class Operands> u32 come_elsewhere(Warp& w, const Ins& i) {
  const auto mask = [&](const Ins& at, u32 come) {
    return lanes<u32>(w, operands<Operands>(at).members)[__builtin_ctz(come)];
  };
  u32 found = 0;
  for (const Group& g : w.others) {
    const Ins& at = w.program->code[g.pc];
    if (g.wait == Group::warp_sync && g.pc != w.pc && at.run == i.run)
      found |= mask(at, g.mask) == mask(i, w.exec) ? g.mask : 0;
  }
  return found;
}

void release(Warp& w, u32 elsewhere) {
  for (Group& g : w.others)
    if (g.mask & elsewhere) g.wait = Group::ready, ++g.pc;
}

// True when the operation may go ahead; a finding is made when lanes that it names cannot come.
bool assembled(Warp& w, i32 masks, Flow& flow, bool reads_others = false, u32 elsewhere = 0) {
  check_masks(w, masks, reads_others);  // on arrival: others may end the wait from another place
  u32 members = 0;
  for (u32 rest = w.exec; rest; rest &= rest - 1)
    members |= lanes<u32>(w, masks)[__builtin_ctz(rest)];
  members &= ~elsewhere;
  const Assembly assembly = assemble(w, members, Group::warp_sync);
  if (assembly == Assembly::waiting) {
    flow = Flow::yield;
    return false;
  }
  if (assembly == Assembly::incomplete) report_missing(w, DIVERGENT_WARP_OP, members & w.live);
  return true;
}

// The lanes that exchange values: cooperative_groups, too, takes it that what one lane has acquired
// the others know then.
void share_acquired(Warp& w) {
  if (w.uses_lane_clocks()) w.some_lanes |= w.exec;
}

// Runs `f` once for the lanes of every mask: groups of lanes may come to one instruction together.
template <class F> Flow in_groups(Warp& w, i32 masks, F f) {
  Flow flow = Flow::next;
  if (!assembled(w, masks, flow)) return flow;
  const u32 exec = w.exec;
  const u32* mask = lanes<u32>(w, masks);
  for (u32 left = exec; left; left &= ~w.exec) {
    const u32 own = mask[__builtin_ctz(left)];
    w.exec = 0;
    for (u32 rest = left; rest; rest &= rest - 1)
      w.exec |= u32(mask[__builtin_ctz(rest)] == own) << __builtin_ctz(rest);
    share_acquired(w);
    f();
  }
  w.exec = exec;
  return Flow::next;
}

enum Shuffle { UP, DOWN, BFLY, IDX };

struct ShuffleOperands {
  i32 result, inside, source, lane, clamp, members;
};  // inside: -1: not wanted

// What the lanes of a shuffle give.
struct Given {
  u32 lanes = 0, undefined = 0, value[LANES] = {}, origin[LANES];

  void add(Warp& w, i32 source) {
    lanes |= w.exec;
    if (w.tainted) undefined |= w.undefined[source] & w.exec;
    for (u32 rest = w.exec; rest; rest &= rest - 1) {
      const int l = __builtin_ctz(rest);
      value[l] = sim::lanes<u32>(w, source)[l];
      if (w.tainted) origin[l] = w.origin[source];
    }
  }
};

template <Shuffle mode> void take(Warp& w, const ShuffleOperands& o, const Given& given) {
  u32 *d = lanes<u32>(w, o.result), *b = lanes<u32>(w, o.lane), *c = lanes<u32>(w, o.clamp);
  u32 result[LANES], valid = 0, undefined = 0, origin = w.pc;
  for (int l = 0; l < LANES; ++l) {
    if (!(w.exec >> l & 1)) continue;
    i32 segment = c[l] >> 8 & 31, clamp = c[l] & 31, lane = l, by = b[l] & 31;
    i32 high = (lane & segment) | (clamp & ~segment), low = lane & segment;
    i32 from = mode == UP     ? lane - by
               : mode == DOWN ? lane + by
               : mode == BFLY ? lane ^ by
                              : low | (by & ~segment);
    bool inside = mode == UP ? from >= high : from <= high;
    if (!inside) from = lane;
    valid |= u32(inside) << l;
    result[l] = given.value[from];
    if (!(given.lanes >> from & 1)) undefined |= 1u << l;  // takes no part, so has no value
    else if (given.undefined >> from & 1) {
      undefined |= 1u << l;
      origin = given.origin[from];
    }
  }
  for (int l = 0; l < LANES; ++l)
    if (w.exec >> l & 1) d[l] = result[l];
  if (o.inside >= 0) w.preds[o.inside] = (w.preds[o.inside] & ~w.exec) | valid;
  if (undefined || w.tainted) mark_undefined(w, o.result, undefined, origin);
}

template <Shuffle mode> Flow shuffle(Warp& w, const Ins& i) {
  Flow flow = Flow::next;
  const u32 elsewhere = come_elsewhere<ShuffleOperands>(w, i);
  if (!assembled(w, operands<ShuffleOperands>(i).members, flow, true, elsewhere)) return flow;
  const u32 here = w.exec;
  const auto at_each_place = [&](auto f) {
    f(operands<ShuffleOperands>(i));
    for (const Group& g : w.others)
      if (g.mask & elsewhere) {
        w.exec = g.mask;
        f(operands<ShuffleOperands>(w.program->code[g.pc]));
      }
    w.exec = here;
  };
  Given given;
  at_each_place([&](const ShuffleOperands& o) { given.add(w, o.source); });
  at_each_place([&](const ShuffleOperands& o) { take<mode>(w, o, given); });
  release(w, elsewhere);
  w.exec |= elsewhere;
  share_acquired(w);
  w.exec = here;
  return Flow::next;
}

enum Vote { EVERY, ANYONE, UNANIMOUS, BALLOT };
struct VoteOperands {
  i32 result, vote, members;
};  // result: of ballot a register, else a predicate

template <Vote mode> Flow vote(Warp& w, const Ins& i) {
  const auto o = operands<VoteOperands>(i);
  return in_groups(w, o.members, [&] {
    u32 yes = w.preds[o.vote] & w.exec;
    if (mode == BALLOT) {
      u32* d = lanes<u32>(w, o.result);
      for (int l = 0; l < LANES; ++l)
        if (w.exec >> l & 1) d[l] = yes;
      return;
    }
    bool result = mode == EVERY ? yes == w.exec : mode == ANYONE ? yes != 0 : !yes || yes == w.exec;
    w.preds[o.result] = (w.preds[o.result] & ~w.exec) | (result ? w.exec : 0);
  });
}

struct MatchOperands { i32 result, agree, source, members; };  // agree: -1: not wanted

template <class T, bool all> Flow match(Warp& w, const Ins& i) {
  const auto o = operands<MatchOperands>(i);
  return in_groups(w, o.members, [&] {
    u32* d = lanes<u32>(w, o.result);
    T* a = lanes<T>(w, o.source);
    u32 result[LANES] = {}, agree = 0;
    for (int l = 0; l < LANES; ++l)
      for (int k = 0; k < LANES; ++k)
        if (w.exec >> l & w.exec >> k & 1 && a[k] == a[l]) result[l] |= 1u << k;
    for (int l = 0; l < LANES; ++l) {
      if (!(w.exec >> l & 1)) continue;
      bool same = result[l] == w.exec;
      d[l] = all ? (same ? w.exec : 0) : result[l];
      agree |= u32(same) << l;
    }
    if (all && o.agree >= 0) w.preds[o.agree] = (w.preds[o.agree] & ~w.exec) | agree;
  });
}

struct ReduceOperands { i32 result, source, members; };

template <class T, class F> Flow reduce(Warp& w, const Ins& i) {
  const auto o = operands<ReduceOperands>(i);
  return in_groups(w, o.members, [&] {
    T *d = lanes<T>(w, o.result), *a = lanes<T>(w, o.source);
    T sum = a[__builtin_ctz(w.exec)];
    for (u32 rest = w.exec & (w.exec - 1); rest; rest &= rest - 1)
      sum = F{}(sum, a[__builtin_ctz(rest)]);
    for (int l = 0; l < LANES; ++l)
      if (w.exec >> l & 1) d[l] = sum;
  });
}
template <class T, class F> void redux(Table& t, const char* name, F) {
  add(t, name, reduce<T, F>, "n>nn");
}

struct SyncOperands { i32 members; };

Flow sync_warp(Warp& w, const Ins& i) {
  const auto o = operands<SyncOperands>(i);
  const u32* mask = lanes<u32>(w, o.members);
  const u32 elsewhere = come_elsewhere<SyncOperands>(w, i);
  Flow flow = Flow::next;
  if (!assembled(w, o.members, flow, false, elsewhere)) return flow;
  release(w, elsewhere);
  const u32 here = w.exec;
  w.exec |= elsewhere;
  for (u32 rest = here; rest;) {
    const u32 part = mask[__builtin_ctz(rest)] & w.exec;
    w.live & ~part ? w.join_lanes(part) : w.tick();
    rest &= ~part & (rest - 1);
  }
  w.exec = here;
  return Flow::next;
}

Flow active_mask(Warp& w, const Ins& i) {
  u32* d = lanes<u32>(w, i.output());
  for (int l = 0; l < LANES; ++l)
    if (w.exec >> l & 1) d[l] = w.exec;
  return Flow::next;
}

struct ElectOperands { i32 leader, elected, members; };  // leader: -1: not wanted

Flow elect(Warp& w, const Ins& i) {
  const auto o = operands<ElectOperands>(i);
  return in_groups(w, o.members, [&] {
    u32 leader = __builtin_ctz(w.exec);
    if (o.leader >= 0)
      for (int l = 0; l < LANES; ++l)
        if (w.exec >> l & 1) lanes<u32>(w, o.leader)[l] = leader;
    w.preds[o.elected] = (w.preds[o.elected] & ~w.exec) | 1u << leader;
  });
}

}  // namespace

void add_warp(Table& t) {
  add(t, "shfl.up", shuffle<UP>, "nP>nnnn");
  add(t, "shfl.down", shuffle<DOWN>, "nP>nnnn");
  add(t, "shfl.bfly", shuffle<BFLY>, "nP>nnnn");
  add(t, "shfl.idx", shuffle<IDX>, "nP>nnnn");
  add(t, "vote.all", vote<EVERY>, "p>pn");
  add(t, "vote.any", vote<ANYONE>, "p>pn");
  add(t, "vote.uni", vote<UNANIMOUS>, "p>pn");
  add(t, "vote.ballot", vote<BALLOT>, "n>pn");
  add(t, "match.any.b32", match<u32, false>, "nP>nn");
  add(t, "match.any.b64", match<u64, false>, "nP>wn");
  add(t, "match.all.b32", match<u32, true>, "nP>nn");
  add(t, "match.all.b64", match<u64, true>, "nP>wn");
  redux<u32>(t, "redux.add.u32", [](u32 a, u32 b) { return a + b; });
  redux<u32>(t, "redux.add.s32", [](u32 a, u32 b) { return a + b; });
  redux<u32>(t, "redux.min.u32", [](u32 a, u32 b) { return std::min(a, b); });
  redux<u32>(t, "redux.max.u32", [](u32 a, u32 b) { return std::max(a, b); });
  redux<i32>(t, "redux.min.s32", [](i32 a, i32 b) { return std::min(a, b); });
  redux<i32>(t, "redux.max.s32", [](i32 a, i32 b) { return std::max(a, b); });
  redux<u32>(t, "redux.and.b32", [](u32 a, u32 b) { return a & b; });
  redux<u32>(t, "redux.or.b32", [](u32 a, u32 b) { return a | b; });
  redux<u32>(t, "redux.xor.b32", [](u32 a, u32 b) { return a ^ b; });
  add(t, "bar.warp.sync", sync_warp, ">n");
  add(t, "activemask", active_mask, "n>");
  add(t, "elect", elect, "Np>n");
}

}  // namespace sim
