// A warp executes instructions.
#include "../checks/suspect_reads.hpp"
#include "../checks/undefined.hpp"
#include "../checks/watched.hpp"
#include "divergence.hpp"
#include "preemption.hpp"
#include "turns.hpp"

namespace sim {
namespace {

// What a second look is to find out is known.
void stop(Warp& w) {
  w.block->stopped = true;
  w.block->machine->trapped = true;
}

struct Unwatched {
  Unwatched(const Warp&, const Ins&) {}
  void keep(const Warp&) {}
};

// What each instruction does is noted by a Step, or not.
template <class Noted> [[gnu::always_inline]] inline void run(Warp& w) {
  w.fuel = WARP_FUEL;
  w.waited = false;
  if (!w.now.mask && !pick(w)) return;
  const Ins* code = w.program->code.data();
  for (;;) {
    const Ins& i = code[w.pc];
    w.exec = w.now.mask;
    if (__builtin_expect(i.flags & SYNCHRONISES, 0) && gives_way(w, i)) return;
    if (__builtin_expect(w.tainted, 0)) check_use(w, i);
    if (i.guard >= 0) {
      if (i.flags & DECIDES) check_defined(w, i.guard, UNDEFINED_BRANCH, true);
      w.exec &= i.negate ? ~w.preds[i.guard] : w.preds[i.guard];
      if (!w.exec) {
        ++w.pc;
        continue;
      }
      FlowCount& c = w.program->guarded[w.pc];
      c.warps += !w.repeats;
      c.lanes += w.repeats ? 0 : __builtin_popcount(w.exec);
    }
    Flow flow;
    Noted step(w, i);
    if (__builtin_expect(w.tainted, 0)) {
      const bool bit_by_bit = propagate_bits(w, i);
      flow = i.run(w, i);
      if (!bit_by_bit && w.tainted) propagate(w, i);
      if (w.block->machine->used) return stop(w);
    } else {
      flow = i.run(w, i);  // what it may leave undefined it marks itself
    }
    step.keep(w);
    if (flow == Flow::next) {
      ++w.pc;
    } else if (flow == Flow::yield) {
      if (w.block->stopped) return;
      if (w.fuel < 0 || w.resting) {
        w.waited = w.resting;
        w.resting = false;
        w.turns = w.waited ? 0 : w.turns + 1;
        if (w.fair || w.turns > MANY_TURNS) take_turns(w);
        return;
      }
      if (!w.now.mask && !pick(w)) return;
    }
  }
}

[[gnu::noinline, gnu::cold]] void run_watched(Warp& w) { run<Step>(w); }

}  // namespace

void run_warp(Warp& w) {
  if (__builtin_expect(!w.home->machine->watching.elements.empty(), 0)) return run_watched(w);
  run<Unwatched>(w);
}

}  // namespace sim
