// atom and red.
#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "../arithmetic/extremes.hpp"
#include "../arithmetic/lanewise.hpp"
#include "../checks/conflicts.hpp"
#include "../checks/global_races.hpp"
#include "../checks/knowledge.hpp"
#include "../checks/shared_races.hpp"
#include "../checks/undefined.hpp"
#include "../schedule/waiting.hpp"
#include "cost.hpp"
#include "reductions.hpp"
#include "spaces.hpp"

namespace sim {
namespace {

// old: -1 for red; swapped: what cas writes, else -1
struct AtomicOperands { i32 old, value, swapped; };

// NaN is the same as itself, and the two zeros differ.
template <class T> bool same_bits(const T& a, const T& b) {
  using Bytes = std::array<u8, sizeof(T)>;
  return std::bit_cast<Bytes>(a) == std::bit_cast<Bytes>(b);
}

template <class T, class F> void atomic_on(Warp& w, const Ins& i, Access& a, u8 space, F f) {
  const auto o = operands<AtomicOperands>(i);
  drop_misaligned(w, a, space, true);
  Region* common = nullptr;
  if (space == SHARED) {
    if (a.mask) settle_shared(w, a, true);
    count_shared(w, a);
  } else {
    if (a.mask) common = settle_global(w, a, space, true);
    count_global(w, a);
    check_defined(w, o.value, UNDEFINED_STORE, false);
    w.block->fenced |= bool(i.order() & (ACQUIRES | RELEASES));
    trace(w, a, o.old < 0 ? WRITTEN_STRONGLY : Use(WRITTEN_STRONGLY | READ_STRONGLY));
  }
  Source<T> b(w, o.value), c(w, o.swapped < 0 ? o.value : o.swapped);
  auto* old = o.old < 0 ? nullptr : lanes<typename Lane<T>::Cell>(w, o.old);
  const bool shared = space == SHARED;
  Signal signal(w, space, i.order());
  u32 undefined = 0, origin = w.pc;
  for (int l = 0; l < LANES; ++l) {
    if (!(a.mask >> l & 1)) continue;
    i64 index = w.program->hints[w.pc].region;
    Region* r = space == SHARED ? nullptr
                : common        ? common
                                : w.block->machine->find(a.at[l], index);
    u8* at = r ? r->data + (a.at[l] - r->base) : w.block->shared.data() + a.at[l];
    T before;
    std::memcpy(&before, at, sizeof before);
    T after = f(before, b[l], c[l]);
    const bool same = same_bits(before, after);
    if (old) {
      const bool locks = o.swapped >= 0 && i.order() & AWAITED && !same;
      locks ? signal.take_lock(a.at[l]) : signal.ask_and_change(a.at[l]);
      const u32 cell = 1u << (shared ? w.program->shared_shift : w.program->global_shift);
      await(w, shared ? shared_place(*w.block, u32(a.at[l])) : a.at[l], sizeof(T), cell);
    }
    if (!same) signal.raise(a.at[l]);
    if (r && o.swapped >= 0)
      for (u32 k = 0; k < sizeof(T); k += 1u << w.program->global_shift)
        w.block->machine->compared.insert(a.at[l] + k);
    if (r && sizeof(T) == 4 && a.at[l] == w.block->machine->counter()) {
      const auto top = [](const T& value) { return reinterpret_cast<const u8*>(&value)[3] & 0x80; };
      if (top(before) != top(after)) signal.open();
    }
    w.block->machine->changes += !same;
    bool bad;
    if (r) {
      bad = !r->all_defined && !r->defined[(a.at[l] - r->base) >> w.program->global_shift];
      if (bad) {
        Event e = event_at(w, UNDEFINED_STORE, l);
        e.region = index;
        e.region_start = e.address = r->base;
        w.block->machine->report(e);
      }
      global_write(w, l, *r, index, a.at[l], sizeof(T), false, true, true);
    } else {
      bad = is_undefined(*w.block, u32(a.at[l]) >> w.program->shared_shift);
      shared_write(w, l, u32(a.at[l]), sizeof(T), false, true, bad ? w.pc : DEFINED);
    }
    undefined |= u32(bad) << l;
    std::memcpy(at, &after, sizeof after);
    if (old) old[l] = to_cell<T>(before);
  }
  if (old && (undefined || w.tainted)) mark_undefined(w, o.old, undefined, origin);
}

template <class T, class F> Flow atomic(Warp& w, const Ins& i) {
  in_spaces(w, i, [&](Access& a, u8 space) { atomic_on<T>(w, i, a, space, F{}); });
  const i32 old = operands<AtomicOperands>(i).old;
  if (old < 0) return Flow::next;
  return look_at(w, i, old, sizeof(typename Lane<T>::Cell));
}

struct Atomics {
  Table operations;
  std::vector<Reduction> reductions;
};

template <class T, class F> void apply_to(u8* to, const u8* from) {
  T before, by;
  std::memcpy(&before, to, sizeof before);
  std::memcpy(&by, from, sizeof by);
  const T after = F{}(before, by, by);
  std::memcpy(to, &after, sizeof after);
}

template <class T, class F> void atom(Atomics& t, const char* name, F) {
  const std::string_view reduces = std::string_view(name).substr(std::string_view("atom.").size());
  if (!reduces.starts_with("exch") && !reduces.starts_with("cas") && !reduces.ends_with("x2"))
    t.reductions.push_back({reduces, sizeof(T), apply_to<T, F>});
  const char type = letter<T>, old = letter<T> == 'w' ? 'W' : 'N';
  const bool compares = std::string_view(name).starts_with("atom.cas.");
  t.operations.push_back({name,
                          atomic<T, F>,
                          {old, '>', type, compares ? type : '-', '-', 'a', 'i'},
                          [](const Program&, const Ins& i) {
                            return i.width == sizeof(T) && i.vec == 1 &&
                                   (i.space == GLOBAL || i.space == SHARED || i.space == GENERIC);
                          }});
}

template <class T> u16 half_add(u16 a, u16 b) {
  return rounded_to<T>(double(float(T{a})) + double(float(T{b})), 'n').bits;
}
template <class T> u32 half2_add(u32 a, u32 b) {
  const u16 low = half_add<T>(u16(a), u16(b)), high = half_add<T>(u16(a >> 16), u16(b >> 16));
  return u32(high) << 16 | low;
}

// Converting the result back is exact.
template <class T> u16 half_least(u16 a, u16 b) {
  return rounded_to<T>(least(float(T{a}), float(T{b})), 'n').bits;
}
template <class T> u16 half_most(u16 a, u16 b) {
  return rounded_to<T>(most(float(T{a}), float(T{b})), 'n').bits;
}

Atomics all_atomics() {
  Atomics t;
  atom<u32>(t, "atom.add.u32", [](u32 a, u32 b, u32) { return a + b; });
  atom<u64>(t, "atom.add.u64", [](u64 a, u64 b, u64) { return a + b; });
  atom<float>(t, "atom.add.f32", [](float a, float b, float) { return a + b; });
  atom<double>(t, "atom.add.f64", [](double a, double b, double) { return a + b; });
  atom<u16>(t, "atom.add.f16", [](u16 a, u16 b, u16) { return half_add<Half>(a, b); });
  atom<u16>(t, "atom.add.bf16", [](u16 a, u16 b, u16) { return half_add<Bfloat>(a, b); });
  atom<u16>(t, "atom.min.f16", [](u16 a, u16 b, u16) { return half_least<Half>(a, b); });
  atom<u16>(t, "atom.max.f16", [](u16 a, u16 b, u16) { return half_most<Half>(a, b); });
  atom<u16>(t, "atom.min.bf16", [](u16 a, u16 b, u16) { return half_least<Bfloat>(a, b); });
  atom<u16>(t, "atom.max.bf16", [](u16 a, u16 b, u16) { return half_most<Bfloat>(a, b); });
  atom<u32>(t, "atom.add.f16x2", [](u32 a, u32 b, u32) { return half2_add<Half>(a, b); });
  atom<u32>(t, "atom.add.bf16x2", [](u32 a, u32 b, u32) { return half2_add<Bfloat>(a, b); });
  atom<u32>(t, "atom.and.b32", [](u32 a, u32 b, u32) { return a & b; });
  atom<u32>(t, "atom.or.b32", [](u32 a, u32 b, u32) { return a | b; });
  atom<u32>(t, "atom.xor.b32", [](u32 a, u32 b, u32) { return a ^ b; });
  atom<u64>(t, "atom.and.b64", [](u64 a, u64 b, u64) { return a & b; });
  atom<u64>(t, "atom.or.b64", [](u64 a, u64 b, u64) { return a | b; });
  atom<u64>(t, "atom.xor.b64", [](u64 a, u64 b, u64) { return a ^ b; });
  atom<u32>(t, "atom.exch.b32", [](u32, u32 b, u32) { return b; });
  atom<u64>(t, "atom.exch.b64", [](u64, u64 b, u64) { return b; });
  atom<u16>(t, "atom.cas.b16", [](u16 a, u16 b, u16 c) { return a == b ? c : a; });
  atom<u32>(t, "atom.cas.b32", [](u32 a, u32 b, u32 c) { return a == b ? c : a; });
  atom<u64>(t, "atom.cas.b64", [](u64 a, u64 b, u64 c) { return a == b ? c : a; });
  atom<u32>(t, "atom.inc.u32", [](u32 a, u32 b, u32) { return a >= b ? 0u : a + 1; });
  atom<u32>(t, "atom.dec.u32", [](u32 a, u32 b, u32) { return a == 0 || a > b ? b : a - 1; });
  atom<u32>(t, "atom.min.u32", [](u32 a, u32 b, u32) { return std::min(a, b); });
  atom<u32>(t, "atom.max.u32", [](u32 a, u32 b, u32) { return std::max(a, b); });
  atom<i32>(t, "atom.min.s32", [](i32 a, i32 b, i32) { return std::min(a, b); });
  atom<i32>(t, "atom.max.s32", [](i32 a, i32 b, i32) { return std::max(a, b); });
  atom<u64>(t, "atom.min.u64", [](u64 a, u64 b, u64) { return std::min(a, b); });
  atom<u64>(t, "atom.max.u64", [](u64 a, u64 b, u64) { return std::max(a, b); });
  atom<i64>(t, "atom.min.s64", [](i64 a, i64 b, i64) { return std::min(a, b); });
  atom<i64>(t, "atom.max.s64", [](i64 a, i64 b, i64) { return std::max(a, b); });
  return t;
}

const Atomics& atomics() {
  static const Atomics all = all_atomics();
  return all;
}

}  // namespace

void add_atomics(Table& t) {
  t.insert(t.end(), atomics().operations.begin(), atomics().operations.end());
}

const std::vector<Reduction>& reductions() { return atomics().reductions; }

const Reduction& reduction_of(const Warp& w) {
  std::string_view name = w.program->named[w.pc]->name;
  name = name.substr(name.rfind('.', name.rfind('.') - 1) + 1);
  return *std::find_if(reductions().begin(), reductions().end(),
                       [&](const Reduction& each) { return name == each.name; });
}

bool is_for_shared(const Reduction& r) {
  constexpr std::string_view NAMES[] = {"add.u32", "add.u64", "and.b32", "or.b32",
                                        "xor.b32", "inc.u32", "dec.u32", "min.u32",
                                        "max.u32", "min.s32", "max.s32"};
  return std::find(std::begin(NAMES), std::end(NAMES), r.name) != std::end(NAMES);
}

}  // namespace sim
