#include "conflicts.hpp"

#include <string_view>

#include "../program/operations.hpp"
#include "suspect_reads.hpp"
#include "release_acquire.hpp"

namespace sim {
namespace {

constexpr size_t MOST_SUSPENDED = 1 << 14;  // of a launch
constexpr size_t MOST_UNWRITTEN = 1 << 16;  // the same

bool is_atomic(const Program& p, u32 pc) {
  const std::string_view name = p.named[pc & PC_MASK]->name;
  return name.starts_with("atom.") || name.starts_with("red.") || name.starts_with("cp.reduce.");
}

i32 order_of(const Program& p, u32 pc) {
  const Ins& i = p.code[pc & PC_MASK];
  return i.flags & SYNCHRONISES ? i.order() : 0;
}

void suspend(Machine& m, const Event& e, u64 place, bool first) {
  if (m.suspended.size() < MOST_SUSPENDED)
    m.suspended.try_emplace({e.pc, e.other_pc, place}, Machine::Suspended{e, first});
}

void report_race(Machine& m, const Event& e, u64 place, bool first) {
  m.report(e);
  if (first && e.space == GLOBAL) m.too_early_of.insert(e.region);
  else if (first) {  // the race names one of the reads, and others may have been too early as well
    m.too_early.insert(e.other_pc);
    const auto end = m.found_unwritten.end();
    for (auto at = m.found_unwritten.lower_bound({place, 0}); at != end && at->first == place; ++at)
      m.too_early.insert(at->second);
  }
}

void suspect_reader(Warp& w, const Event& e, const Region::Stamp& other) {
  Machine& m = *w.home->machine;
  if (!e.write) suspect(m, e, w.home->linear + 1, w.epoch(0), w.pc);
  else if (!e.other_write) suspect(m, e, other.block, other.epoch, e.other_pc);
}

bool comes_of_race(const Machine& m, const Event& e) {
  const bool undefined =
      e.kind == UNDEFINED_STORE || e.kind == UNDEFINED_ADDRESS || e.kind == UNDEFINED_BRANCH;
  return undefined && (m.too_early.contains(e.other_pc) ||
                       (e.space != SHARED && m.too_early_of.contains(e.region)));
}

}  // namespace

Strength strength(const Program& p, u32 pc) {
  if (!(p.code[pc & PC_MASK].flags & SYNCHRONISES))
    return is_atomic(p, pc) ? Strength::synchronises : Strength::plain;
  return order_of(p, pc) & VOLATILE ? Strength::is_volatile : Strength::synchronises;
}

bool scopes_meet(const Warp& w, const Region::Stamp& other) {
  const Program& p = *w.program;
  return other.block == w.home->linear + 1 ||
         !((order_of(p, w.pc) | order_of(p, other.pc)) & BLOCK_SCOPE);
}

void await(Warp& w, u64 place, u32 bytes, u32 cell) {
  if (!w.program->has_volatile) return;
  for (u32 at = 0; at < bytes; at += cell) w.home->machine->awaited.insert(place + at);
}

void conflict(Warp& w, Event e, const Region::Stamp& other, u64 place, bool first) {
  const Program& p = *w.program;
  Machine& m = *w.home->machine;
  const Strength mine = strength(p, w.pc), theirs = strength(p, other.pc);
  const bool plain = mine == Strength::plain, both_strong = !plain && theirs != Strength::plain;
  const bool is_volatile = mine == Strength::is_volatile || theirs == Strength::is_volatile;
  const bool of_wgmma = !e.other_write && other.pc & BY_WGMMA;  // its stamp has another meaning
  if (!plain && flag_orders(w, other)) return;
  if (is_atomic(p, w.pc) && is_atomic(p, other.pc)) {
    if (scopes_meet(w, other)) return;
    e.kind = BLOCK_SCOPE_ONLY;
  } else if (both_strong || (is_volatile && e.space == GLOBAL && !(plain && e.other_write))) {
    e.kind = VOLATILE_RACE;
    if (is_volatile) suspend(m, e, place, first);
    return;
  } else if (plain && !of_wgmma && (flag_orders(w, other) || lock_orders(w, other))) {
    e.kind = NO_FENCE_AFTER_FLAG;
  } else if (e.write && e.other_write && (is_atomic(p, w.pc) || is_atomic(p, other.pc))) {
    e.kind = ATOMIC_AND_PLAIN;
  }
  if (e.space == GLOBAL && e.kind == RACE) suspect_reader(w, e, other);
  report_race(m, e, place, first);
}

void found_unwritten(Warp& w, u64 place) {
  auto& found = w.home->machine->found_unwritten;
  if (found.size() < MOST_UNWRITTEN) found.emplace(place, w.pc);
}

void look_at_atomic(Warp& w, const Event& e) {
  if (strength(*w.program, e.pc) == Strength::plain) suspend(*w.home->machine, e, e.address, false);
}

void conclude(Machine& m) {
  for (const auto& [key, race] : m.suspended) {
    const auto& excused = race.event.kind == LOOKS_AT_ATOMIC ? m.compared : m.awaited;
    const u64 place = std::get<u64>(key);
    if (!excused.contains(place)) report_race(m, race.event, place, race.first);
  }
  std::erase_if(m.events, [&](const Event& e) { return comes_of_race(m, e); });
  m.suspended.clear();
  m.awaited.clear();
  m.compared.clear();
  m.too_early.clear();
  m.too_early_of.clear();
  m.found_unwritten.clear();
}

}  // namespace sim
