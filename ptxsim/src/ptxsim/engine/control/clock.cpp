// %clock, %clock64 and %globaltimer, which no two looks find the same, and nanosleep.
//
// A cycle stands for a nanosecond too. How long anything takes is made up; what counts is that time
// goes on, so that a program may wait for it and never divides by an interval of zero.
#include <algorithm>

#include "../machine/machine.hpp"
#include "../program/operations.hpp"

namespace sim {
namespace {

constexpr u64 OF_A_BLOCK = 32;  // cycles that a warp takes for a basic block
constexpr u64 OF_A_LOOK = 8;
constexpr u64 START = u64{1} << 32;  // more than the blocks of a turn that is not over

u64 look(Warp& w) {
  Machine& m = *w.block->machine;
  m.unrepeatable = true;
  const u64 passed = START + OF_A_BLOCK * u64(i64(m.steps) - w.fuel);
  return m.cycles = std::max(m.cycles + OF_A_LOOK, passed);
}

template <class T> Flow read_clock(Warp& w, const Ins& i) {
  const T now = T(look(w));
  T* d = lanes<T>(w, i.output());
  for (int l = 0; l < LANES; ++l)
    if (w.exec >> l & 1) d[l] = now;
  return Flow::next;
}

Flow sleep(Warp& w, const Ins& i) {
  constexpr u32 LONGEST = 1000000;  // nanoseconds
  const u32* wanted = lanes<u32>(w, i.input(0));
  u32 longest = 0;
  for (int l = 0; l < LANES; ++l)
    if (w.exec >> l & 1) longest = std::max(longest, std::min(wanted[l], LONGEST));
  w.block->machine->cycles = look(w) + longest;
  return Flow::next;
}

}  // namespace

void add_clocks(Table& t) {
  add(t, "clock.b32", read_clock<u32>, "n>");
  add(t, "clock.b64", read_clock<u64>, "w>");
  add(t, "nanosleep", sleep, ">-n");
}

}  // namespace sim
