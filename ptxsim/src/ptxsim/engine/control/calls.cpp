// Calls and returns.
#include "../checks/undefined.hpp"
#include "../limits.hpp"
#include "../machine/machine.hpp"
#include "../program/operations.hpp"
#include "barriers.hpp"
#include "branches.hpp"

namespace sim {
namespace {

// A function's registers and lane-private memory. Functions that can call themselves save them when
// called and restore them when they return.
struct Range {
  i32 from, to;
  i32 size() const { return to - from; }
  bool within(u32 most) const { return 0 <= from && from <= to && u32(to) <= most; }
};
struct Frame {
  Range wide, narrow;  // slots of 64-bit and of 32-bit registers
  Range predicates;
  Range bytes;  // of lane-private memory

  size_t size() const {
    return wide.size() * 4 + narrow.size() * 4 + predicates.size() + bytes.size();
  }
};

bool is_frame(const Program& p, const Ins& i) {
  const auto f = operands<Frame>(i);
  return f.wide.within(p.slots) && f.wide.size() % 2 == 0 && f.narrow.within(p.slots) &&
         f.predicates.within(p.predicates) && f.bytes.within(p.local_bytes);
}

template <class F> void each_part(Warp& w, const Frame& f, F each) {
  for (i32 s = f.wide.from; s < f.wide.to; s += 2)
    for (int l = 0; l < LANES; ++l) each(l, lanes<u64>(w, s) + l, 8);
  for (i32 s = f.narrow.from; s < f.narrow.to; ++s)
    for (int l = 0; l < LANES; ++l) each(l, lanes<u32>(w, s) + l, 4);
  for (int l = 0; l < LANES; ++l)
    if (f.bytes.size() > 0)
      each(l, w.local.data() + u64(l) * w.program->local_bytes + f.bytes.from, f.bytes.size());
}

void save_frame(Warp& w, const Frame& f) {
  each_part(w, f, [&](int l, void* at, int bytes) {
    if (w.exec >> l & 1)
      w.saved[l].insert(w.saved[l].end(), static_cast<u8*>(at), static_cast<u8*>(at) + bytes);
  });
  for (int l = 0; l < LANES; ++l)
    if (w.exec >> l & 1)
      for (i32 p = f.predicates.from; p < f.predicates.to; ++p)
        w.saved[l].push_back(w.preds[p] >> l & 1);
}

void restore_frame(Warp& w, const Frame& f) {
  const size_t size = f.size();
  size_t taken[LANES] = {};
  each_part(w, f, [&](int l, void* at, int bytes) {
    if (!(w.exec >> l & 1)) return;
    std::memcpy(at, w.saved[l].data() + w.saved[l].size() - size + taken[l], bytes);
    taken[l] += bytes;
  });
  for (int l = 0; l < LANES; ++l) {
    if (!(w.exec >> l & 1)) continue;
    set_defined(w, w.local.data() + u64(l) * w.program->local_bytes + f.bytes.from,
                u32(f.bytes.size()));  // nobody saved whether it is
    const u8* bits = w.saved[l].data() + w.saved[l].size() - f.predicates.size();
    for (i32 p = f.predicates.from; p < f.predicates.to; ++p)
      w.preds[p] = (w.preds[p] & ~(1u << l)) | u32(*bits++) << l;
    w.saved[l].resize(w.saved[l].size() - size);
  }
}

constexpr size_t CALL_DEPTH = 512;

template <bool recursive> Flow call(Warp& w, const Ins& i);

i64 stack_of(const Program& p, const Ins& call) {
  return operands<BlockOperands>(p.code[call.target()]).stack;
}

// Whether the recursive calls that have not returned, and this one, take more stack than a thread
// has. ptxas knows what all other calls take, and the driver makes room for them.
bool overflows(const Warp& w, const Ins& i) {
  const Program& p = *w.program;
  i64 bytes = stack_of(p, i);
  for (u32 back : w.now.stack)
    if (const Ins& earlier = p.code[back - 1]; earlier.run == call<true>)
      bytes += stack_of(p, earlier);
  return bytes > i64(w.block->machine->stack_bytes);
}

template <bool recursive> Flow call(Warp& w, const Ins& i) {
  leave_behind(w);
  const size_t depth = w.now.stack.size() + 1;
  if (depth > CALL_DEPTH) return stop(w, TRAP);
  if (recursive && overflows(w, i)) return stop(w, STACK_OVERFLOW);
  if (recursive) save_frame(w, operands<Frame>(i));
  w.now.stack.push_back(w.pc + 1);
  w.pc = u32(i.target());
  return Flow::jumped;
}

// Which of `count` functions, whose addresses begin at `first`, a pointer means. The call of their
// dispatcher follows (called_functions.py).
struct TargetOperands { i32 index, pointer, count; };

Flow call_target(Warp& w, const Ins& i) {
  const auto o = operands<TargetOperands>(i);
  check_defined(w, o.pointer, UNDEFINED_BRANCH, false);
  const u64* pointer = lanes<u64>(w, o.pointer);
  u32* index = lanes<u32>(w, o.index);
  for (int l = 0; l < LANES; ++l) {
    if (!(w.exec >> l & 1)) continue;
    const u64 from_first = pointer[l] - u64(i.target());
    if (from_first % FUNCTION_STEP || from_first / FUNCTION_STEP >= u64(o.count)) {
      w.exec = 1u << l;
      return stop(w, NO_FUNCTION, pointer[l]);
    }
    index[l] = u32(from_first / FUNCTION_STEP);
  }
  return Flow::next;
}

template <bool recursive> Flow ret(Warp& w, const Ins& i) {
  if (w.now.stack.empty()) return leave(w, w.exec);
  if (recursive)
    for (int l = 0; l < LANES; ++l)  // nobody saved a frame: the call did not know this function
      if (w.exec >> l & 1 && w.saved[l].size() < operands<Frame>(i).size()) return stop(w, TRAP);
  leave_behind(w);
  if (recursive) restore_frame(w, operands<Frame>(i));
  w.pc = w.now.stack.back();
  w.now.stack.pop_back();
  w.now.rank = u32(w.program->code[w.pc].rank());
  return Flow::jumped;
}

}  // namespace

void add_calls(Table& t) {
  add(t, "call", call<false>, ">", [](const Program& p, const Ins& i) {
    return is_block(p, i.target()) && falls_into_block(p, i);
  });
  add(t, "call.recursive", call<true>, ">iiiiiiii", [](const Program& p, const Ins& i) {
    return is_block(p, i.target()) && falls_into_block(p, i) && is_frame(p, i);
  });
  add(t, "call.target", call_target, "n>wi",
      [](const Program&, const Ins& i) { return operands<TargetOperands>(i).count >= 0; });
  add(t, "ret", ret<false>, ">", falls_into_block);
  add(t, "ret.recursive", ret<true>, ">iiiiiiii",
      [](const Program& p, const Ins& i) { return falls_into_block(p, i) && is_frame(p, i); });
}

}  // namespace sim
