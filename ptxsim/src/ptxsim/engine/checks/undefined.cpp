#include "undefined.hpp"

#include <algorithm>

#include "../machine/machine.hpp"
#include "../program/kinds.hpp"
#include "../program/operations.hpp"

namespace sim {

namespace {

void set_all_bits(Warp& w, i32 slot, u32 lanes) {
  for (u32 rest = lanes; rest; rest &= rest - 1)
    w.undefined_bits[size_t(slot) * LANES + __builtin_ctz(rest)] = ~u64{0};
}

}  // namespace

void mark_undefined(Warp& w, i32 slot, u32 lanes, u32 origin) {
  if (!w.tainted) {
    w.tainted = true;
    w.undefined_bits.resize(size_t(w.program->slots) * LANES);
    w.undefined.assign(w.program->slots, 0);
    w.origin.assign(w.program->slots, 0);
    w.pred_undefined.assign(w.program->predicates, 0);
    w.pred_origin.assign(w.program->predicates, 0);
  }
  w.undefined[slot] = (w.undefined[slot] & ~w.exec) | lanes;
  if (lanes) w.origin[slot] = origin;
  set_all_bits(w, slot, lanes);
}

void propagate(Warp& w, const Ins& i) {
  if (i.flags & OWN_TAINT || !i.x) return;
  const i32* x = i.x;
  const i32 outputs = *x++;
  const i32* out = x;
  x += outputs;
  const i32 inputs = *x++;
  const i32* in = x;
  x += inputs;
  const i32 predicate_outputs = *x++;
  const i32* pout = x;
  x += predicate_outputs;
  const i32 predicate_inputs = *x++;
  const i32* pin = x;
  u32 bad = 0, origin = 0;
  auto collect = [&](u32 lanes, u32 from) {
    if (lanes) origin = from;
    bad |= lanes;
  };
  if (i.flags & SELECTS) {
    u32 p = w.preds[pin[0]];
    collect(w.undefined[in[0]] & p, w.origin[in[0]]);
    collect(w.undefined[in[1]] & ~p, w.origin[in[1]]);
  } else {
    for (i32 k = 0; k < inputs; ++k) collect(w.undefined[in[k]], w.origin[in[k]]);
  }
  for (i32 k = 0; k < predicate_inputs; ++k)
    collect(w.pred_undefined[pin[k]], w.pred_origin[pin[k]]);
  bad &= w.exec;
  if (bad && i.flags & CROSS_LANE) bad = w.exec;
  for (i32 k = 0; k < outputs; ++k) {
    w.undefined[out[k]] = (w.undefined[out[k]] & ~w.exec) | bad;
    if (bad) w.origin[out[k]] = origin;
    set_all_bits(w, out[k], bad);
  }
  for (i32 k = 0; k < predicate_outputs; ++k) {
    w.pred_undefined[pout[k]] = (w.pred_undefined[pout[k]] & ~w.exec) | bad;
    if (bad) w.pred_origin[pout[k]] = origin;
  }
}

void forget_taint(Warp& w) {
  const auto none = [](const std::vector<u32>& lanes) {
    return std::all_of(lanes.begin(), lanes.end(), [](u32 mask) { return !mask; });
  };
  w.tainted = w.tainted && !(none(w.undefined) && none(w.pred_undefined));
}

Flow never_set(Warp& w, const Ins& i) {
  mark_undefined(w, i.output(), w.exec, w.pc);
  return Flow::next;
}

void report_undefined(Warp& w, i32 slot, EventKind kind, bool predicate, u32 bytes) {
  u32 bad = (predicate ? w.pred_undefined : w.undefined)[slot] & w.exec;
  for (u32 rest = predicate || bytes == 8 ? 0 : bad; rest; rest &= rest - 1)
    if (!undefined_bits(w, slot, __builtin_ctz(rest), bytes)) bad &= ~(rest & -rest);
  if (!bad) return;
  Event e = event_at(w, kind, __builtin_ctz(bad));
  e.other_pc = (predicate ? w.pred_origin : w.origin)[slot];
  // What the origin read: the region its instruction touched last names the array.
  const Ins& origin = w.program->code[e.other_pc];
  if (is_wgmma(origin)) e.kind = WGMMA_NOT_WAITED_FOR;
  else if (!origin.width) e.kind = origin.run == never_set ? NEVER_SET : ABSENT_LANE;
  const Hint& hint = w.program->hints[e.other_pc];
  e.space = hint.space == SPACES ? w.program->code[e.other_pc].space : hint.space;
  e.region = hint.region;
  e.region_start = e.address = hint.low;
  if (const auto& left = w.home->left; e.space == SHARED && left.count) {
    set_details(e, {left.barrier, left.at, left.count});
    e.other_thread = thread_at(*w.block->machine, left.first);
  }
  w.block->machine->report(e);
}

void store_undefined(Warp& w, i32 slot, int lane, const u8* at, u32 bytes) {
  const size_t place = at - w.local.data();
  const u64 bits = w.tainted ? undefined_bits(w, slot, lane, bytes) : 0;
  std::memcpy(&w.unset[place], &bits, bytes);
  if (bits) w.unset_by[place / 4] = w.origin[slot];
}

u64 load_undefined(const Warp& w, const u8* at, u32 bytes, u32 reader, u32& origin) {
  const size_t place = at - w.local.data();
  u64 bits = 0;
  std::memcpy(&bits, &w.unset[place], bytes);
  if (bits) origin = w.unset_by[place / 4] == DEFINED ? reader : w.unset_by[place / 4];
  return bits;
}

void check_in_flight(Warp& w, const i32* slots, u32 count) {
  for (u32 k = 0; k < count && w.tainted; ++k)
    if (w.undefined[slots[k]] && is_wgmma(w.program->code[w.origin[slots[k]]]))
      return check_defined(w, slots[k], WGMMA_NOT_WAITED_FOR, false);
}

void add_undefined(Table& t) {
  add(t, "never_set.narrow", never_set, "n>");
  add(t, "never_set.wide", never_set, "w>");
}

}  // namespace sim
