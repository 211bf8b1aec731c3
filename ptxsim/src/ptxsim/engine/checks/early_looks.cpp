#include "early_looks.hpp"

#include <algorithm>

#include "../program/kinds.hpp"
#include "../schedule/preemption.hpp"
#include "conflicts.hpp"
#include "release_acquire.hpp"
#include "peers.hpp"

namespace sim {
namespace {

constexpr size_t MOST_WORDS = 1 << 16;  // of a launch

// The first access is the one to change, the second one the write that it is in no order with.
Event event_of(Warp& w, EventKind kind, const Region& r, i64 index, u64 address, u32 bytes,
               const Region::Stamp& look, const Region::Stamp& write) {
  const Machine& m = *w.home->machine;
  Event e = event_at(w, kind, 0);
  e.pc = look.pc & PC_MASK;
  e.other_pc = write.pc & PC_MASK;
  e.address = address;
  e.size = bytes;
  e.space = GLOBAL;
  e.other_write = true;
  e.region = index;
  e.region_start = r.base;
  e.region_size = r.size;
  e.block = block_at(m, look.block - 1);
  e.thread = thread_at(m, look.epoch.thread());
  e.other_block = block_at(m, write.block - 1);
  e.other_thread = thread_at(m, write.epoch.thread());
  return e;
}

bool goes_into_a_result(const Program& p, u32 pc) {
  const Ins& i = p.code[pc & PC_MASK];
  return (i.flags & SYNCHRONISES || is_load(i)) && i.order() & RESULT;
}

void check_look(Warp& w, int lane, const Region& r, i64 index, u64 address, u32 bytes,
                const Region::Stamp& look) {
  const Region::Stamp mine{w.home->linear + 1, w.epoch(lane), w.pc};
  const bool own = look.block == mine.block && look.epoch.warp() == w.index;
  if (own || in_order(w, lane, look) || flag_orders(w, look) || lock_orders(w, look)) return;
  if (goes_into_a_result(*w.program, look.pc))
    w.home->machine->report(event_of(w, EARLY_LOOK, r, index, address, bytes, look, mine));
  look_at_atomic(w, event_of(w, LOOKS_AT_ATOMIC, r, index, address, bytes, look, mine));
}

bool has_acquired(const Warp& w) {
  return w.clocks.others || w.clocks.flag_clock.others || w.lane_clocks.others ||
         w.lock_clock.others;
}

}  // namespace

void look_at_word(Warp& w, int lane, u64 address) {
  Machine& m = *w.home->machine;
  if (m.sampling || !(w.program->code[w.pc].order() & RESULT)) return;
  if (m.looks.size() < MOST_WORDS || m.looks.contains(address))
    m.looks[address] = {w.home->linear + 1, w.epoch(lane), w.pc};
}

void change_word(Warp& w, int lane, const Region& r, i64 index, u64 address, u32 bytes,
                 u64 before) {
  Machine& m = *w.home->machine;
  if (m.sampling) return;
  const auto look = m.looks.find(address);
  if (look != m.looks.end()) check_look(w, lane, r, index, address, bytes, look->second);
  const u64 place = (address - r.base) >> w.program->global_shift;
  if (!r.lines.empty())
    for (const auto& [last, other, elsewhere] = r.lines[place / LINE];
         const Region::Reads* read : {&last, &other, &elsewhere})
      if (read->block && read->cells >> place % LINE & 1)
        check_look(w, lane, r, index, address, bytes, {read->block, read->epoch, read->pc});
  if (!w.program->has_strong_loads || m.stale.size() == MOST_WORDS) return;
  if (w.program->code[w.pc].order() & RELEASES) return forget_before(m, address);
  m.stale[address] = {before, bytes, {w.home->linear + 1, w.epoch(lane), w.pc}, {}};
  w.home->unfenced.push_back(address);
}

u8* value_before(Warp& w, int lane, const Region& r, i64 index, u64 address, u32 bytes) {
  Machine& m = *w.home->machine;
  const auto found = m.stale.find(address);
  if (found == m.stale.end() || found->second.bytes != bytes) return nullptr;
  Machine::Stale& word = found->second;
  const u32 me = w.home->linear + 1;
  const auto& seen_by = word.seen_by;
  if (word.write.block == me || std::find(seen_by.begin(), seen_by.end(), me) != seen_by.end())
    return nullptr;
  word.seen_by.push_back(me);
  if (has_acquired(w) || mixed(u64(m.order) << 48 ^ u64(me) << 24 ^ address) & 1) return nullptr;
  const Region::Stamp look{me, w.epoch(lane), w.pc};
  const i32 order = w.program->code[w.pc].order();
  if (order & RESULT &&
      !(order & AWAITED))  // a loop waits for the word that it reads: the new one comes
    m.report(event_of(w, order & UPDATED ? EARLY_LOOK : UNFENCED_READ, r, index, address, bytes,
                      look, word.write));
  return reinterpret_cast<u8*>(&word.before);
}

void settle_writes(Block& b) {
  Machine& m = *b.machine;
  for (const u64 address : b.unfenced) {
    const auto found = m.stale.find(address);
    if (found != m.stale.end() && found->second.write.block == b.linear + 1) m.stale.erase(found);
  }
  b.unfenced.clear();
}

void forget_before(Machine& m, u64 address) {
  if (!m.stale.empty()) m.stale.erase(address);
}

}  // namespace sim
