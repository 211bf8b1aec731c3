#include "waiting.hpp"

#include "../machine/machine.hpp"

namespace sim {
namespace {

u64 mixed(u64 sum, u64 word) { return (sum ^ word) * 0x9e3779b97f4a7c15u; }

u64 all_registers(const Warp& w) {
  u64 sum = 0;
  for (u32 at = 0; at < w.program->slots * 128; at += 8) {
    u64 word;
    std::memcpy(&word, w.regs + at, sizeof word);
    sum = mixed(sum, word) + (sum >> 32);
  }
  for (u32 p = 0; p < w.program->predicates; ++p) sum = mixed(sum, w.preds[p]) + (sum >> 32);
  return sum;
}

}  // namespace

bool looks_again(Warp& w, Look look) {
  if (!look.same(w.look)) {
    w.look = look;
    return false;
  }
  const u64 times = ++w.look.times;
  if (!w.look.waits && !(times & (times - 1))) {
    const u64 registers = all_registers(w);
    w.look.waits = times > 1 && registers == w.look.registers;
    w.look.registers = registers;
  }
  return w.look.waits;
}

// A warp that finds a flag as it was, with nothing changed since, not even a register, waits. A
// loop that counts may end by itself, and does not; nor is one that reads a parameter slowed down.
Flow look_at(Warp& w, const Ins& i, i32 value, u32 bytes) {
  Look look{.pc = w.pc, .seen = w.exec, .changes = w.block->machine->changes};
  const auto mix = [&](i32 slot, u32 width, int l) {
    look.seen = mixed(look.seen, width == 8 ? lanes<u64>(w, slot)[l] : lanes<u32>(w, slot)[l]);
  };
  for (u32 rest = w.exec; rest; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    if (i.base() >= 0) mix(i.base(), i.base_bytes(), l);
    mix(value, bytes, l);
  }
  return looks_again(w, look) ? wait_in_turn(w) : Flow::next;
}

Flow wait_in_turn(Warp& w) {
  w.polls = w.head;
  w.pc++;
  w.resting = true;
  return Flow::yield;
}

}  // namespace sim
