
#include "suspect_reads.hpp"

#include <string_view>

#include "../program/kinds.hpp"
#include "../program/operations.hpp"
#include "undefined.hpp"

namespace sim {
namespace {

constexpr size_t MOST_SUSPECT_READS = 1 << 16;   // of one call
constexpr size_t MOST_SUSPECT_WRITES = 1 << 19;  // that these reads raced with

// All warps of a block that come to a read at the same time of theirs: they do the same.
Machine::Read read_at(const Machine& m, u32 block, Epoch then, u32 pc) {
  return {m.launches, block, then.time(), pc};
}

// Whether it is said what becomes of an undefined operand, or that it does harm. Here it must be:
// the wait for a barrier, a copy, a count, an array in local memory forget it.
bool is_followed(const Ins& i, std::string_view name) {
  if (name.starts_with("bar.")) return false;  // a vote comes to other warps
  if (!(i.flags & OWN_TAINT)) return i.x;      // by propagate()
  return name == "ld" || (name == "st" && (i.space == SHARED || i.space == GLOBAL)) ||
         name == "ldmatrix" || name == "stmatrix" || name.starts_with("mma.");
}

bool is_undefined(const Warp& w, char kind, i32 slot) {
  if (slot < 0) return false;
  if (kind == 'p' || kind == 'P') return w.pred_undefined[slot] & w.exec;
  return std::string_view("nNwWvVa").find(kind) != std::string_view::npos &&
         w.undefined[slot] & w.exec;
}

}  // namespace

void suspect(Machine& m, const Event& e, u32 block, Epoch then, u32 pc) {
  const Ins& reader = m.program->code[pc];
  if (!is_load(reader) && !is_load_matrix(reader)) return;
  const Machine::Read read = read_at(m, block - 1, then, pc);
  if (m.suspect_reads.size() == MOST_SUSPECT_READS && !m.suspect_reads.contains(read)) return;
  Machine::Suspicion& of =
      m.suspect_reads.try_emplace(read, Machine::Suspicion{e, {}}).first->second;
  const Dim writer = e.write ? e.thread : e.other_thread, home = e.write ? e.block : e.other_block;
  if (m.suspect_writes < MOST_SUSPECT_WRITES)
    m.suspect_writes +=
        of.writes.emplace(e.address, linear(home, m.grid), linear(writer, m.ntid)).second;
  else of.everywhere = true;
}

u32 doubted_lanes(Warp& w, const Access& a, u32 cell) {
  Machine& m = *w.block->machine;
  const auto found = m.suspect_reads.find(read_at(m, w.home->linear, w.epoch(0), w.pc));
  if (found == m.suspect_reads.end()) return 0;
  const auto& [event, writes, everywhere] = found->second;
  u32 doubted = everywhere ? a.mask : 0;
  for (u32 rest = a.mask & ~doubted; rest; rest &= rest - 1) {
    const u32 lane = u32(__builtin_ctz(rest));
    const std::pair self{w.home->linear, w.index * LANES + lane};
    auto write = writes.lower_bound({a.at[lane] & ~u64(cell - 1), 0, 0});
    for (; write != writes.end() && std::get<0>(*write) < a.at[lane] + a.bytes; ++write)
      if (self != std::pair{std::get<1>(*write), std::get<2>(*write)}) doubted |= 1u << lane;
  }
  if (doubted) {
    Event e = event;
    e.kind = UNUSED_RACE;
    m.report(e);
  }
  return doubted;
}

void check_use(Warp& w, const Ins& i) {
  if (!w.block->machine->looks_again) return;
  if (i.guard >= 0) check_defined(w, i.guard, UNDEFINED_BRANCH, true);
  const Named& named = *w.program->named[w.pc];
  const std::string_view name = named.name;
  if (is_followed(i, name)) return;
  // It saves and restores registers, but not whether they have a value.
  if (name.ends_with(".recursive"))
    for (u32 slot = 0; slot < w.program->slots; ++slot)
      check_defined(w, i32(slot), UNDEFINED_BRANCH, false);
  const bool pooled = named.shape[0] == '*';
  const i32* o = pooled ? i.x + i.pooled() : i.o;
  bool input = false;
  for (char kind : named.shape.substr(pooled)) {
    if (kind == '>') {
      input = true;
      continue;
    }
    if (input && is_undefined(w, kind, *o))
      check_defined(w, *o, UNDEFINED_BRANCH, kind == 'p' || kind == 'P');
    o += kind == 'a' ? 2 : 1;
  }
}

}  // namespace sim
