
#include "dependency.hpp"

#include <algorithm>

#include "../program/operations.hpp"
#include "release_acquire.hpp"

namespace sim {

namespace {

constexpr u8 WRITES = WRITTEN | WRITTEN_STRONGLY, PLAIN = READ | WRITTEN;

// Two kernels that may run at the same time race for a cell; streams.py has the same.
bool clash(u8 theirs, u8 mine) {
  const u8 both = theirs | mine;
  return theirs && both & WRITES && both & PLAIN;
}

// Whether a flag or counter may show this kernel how far the other one is.
bool signals(u8 theirs, u8 mine) { return theirs & WRITTEN_STRONGLY && mine & READ_STRONGLY; }

// The lanes are in order with the kernels before from now on, and whoever comes after them.
void go_past(Warp& w, u32 lanes) {
  if (!(lanes & ~w.past_wait)) return;
  w.past_wait |= lanes;
  w.home->past_wait.push_back(w.epoch(__builtin_ctz(lanes)));
  w.home->machine->past_wait.push_back({w.home->linear, w.home->past_wait.back()});
}

// Whether the warp comes after a thread that is in order.
bool comes_after(const Warp& w, int lane) {
  const auto own = [&](Epoch then) { return w.ordered(then, lane); };
  const auto& here = w.home->past_wait;
  if (std::any_of(here.rbegin(), here.rend(), own)) return true;
  const auto& all = w.home->machine->past_wait;
  return std::any_of(all.rbegin(), all.rend(), [&](const Machine::Past& each) {
    return each.block != w.home->linear &&
           ordered_elsewhere(w, lane, {each.block + 1, each.epoch, 0});
  });
}

Flow wait_for_launches(Warp& w, const Ins&) {
  w.home->waited = true;
  if (w.home->machine->follows) go_past(w, w.exec);
  return Flow::next;
}

// Only the first of a block counts.
Flow trigger(Warp& w, const Ins&) {
  Block& b = *w.home;
  if (b.triggered) return Flow::next;
  b.triggered = true;
  b.machine->held |= b.waited;
  b.machine->published += b.fenced;
  return Flow::next;
}

}  // namespace

void begin_dependency(Machine& m) {
  m.past_wait.clear();
  m.held = false;
  m.published = 0;
  if (m.follows) return;
  for (auto& r : m.regions) r->in_flight.clear();
}

void end_block_dependency(Block& b) { b.machine->held |= !b.triggered && b.waited; }

// The next launch begins when all blocks have triggered it or ended. If one of them had waited by
// then, the kernels before this one have ended, too; and if all had executed a fence, what they did
// before is visible.
void keep_in_flight(Machine& m) {
  const bool visible = m.published == u64(m.grid.x) * m.grid.y * m.grid.z;
  for (auto& r : m.regions) {
    if (m.held) r->in_flight.clear();
    r->in_flight.resize(std::max(r->in_flight.size(), r->uses.size()));
    for (size_t cell = 0; cell < r->uses.size(); ++cell) {
      u8& use = r->uses[cell];
      const u8 late = use >> AFTER_TRIGGER, all = late | (use & ((1 << AFTER_TRIGGER) - 1));
      r->in_flight[cell] |= visible ? late : all;
      use = all;
    }
  }
}

void check_dependency(Warp& w, int lane, const Region& r, i64 index, u64 address, u32 bytes,
                      u8 theirs, u8 mine) {
  if (w.past_wait >> lane & 1) return;
  if (signals(theirs, mine)) return go_past(w, 1u << lane);
  if (!clash(theirs, mine)) return;
  if (comes_after(w, lane)) {
    w.past_wait = ALL;
    return;
  }
  Event e = event_at(w, BEFORE_GRID_WAIT, lane);
  e.address = address;
  e.size = bytes;
  e.space = GLOBAL;
  e.write = (mine & WRITES) != 0;
  e.other_write = (theirs & WRITES) != 0;
  e.region = index;
  e.region_start = r.base;
  e.region_size = r.size;
  w.home->machine->report(e);
}

void add_dependency(Table& t) {
  add(t, "griddepcontrol.wait", wait_for_launches, ">");
  add(t, "griddepcontrol.launch_dependents", trigger, ">");
}

}  // namespace sim
