#include "../machine/machine.hpp"
#include "../program/operations.hpp"

namespace sim {
namespace {

template <bool wide> Flow fence(Warp& w, const Ins&) {
  w.block->fenced |= wide;
  w.block->fenced_within = true;
  if (!w.program->relaxes) return Flow::next;
  w.learn(w.acquired);
  w.released = w.now_for_others();
  if (wide) w.released_to_all = w.released;
  w.tick();
  return Flow::next;
}

}  // namespace

void add_fences(Table& t) {
  t.push_back({"fence", fence<true>, ">"});
  t.push_back({"fence.cta", fence<false>, ">"});
}

}  // namespace sim
