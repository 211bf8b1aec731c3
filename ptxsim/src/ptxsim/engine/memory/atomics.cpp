// atom and red.
#include <algorithm>
#include <string_view>

#include "../arithmetic/extremes.hpp"
#include "../arithmetic/lanewise.hpp"
#include "../checks/conflicts.hpp"
#include "../checks/early_looks.hpp"
#include "../checks/global_races.hpp"
#include "../checks/release_acquire.hpp"
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

// The `bytes` at a place, and how they are put there.
u64 word_at(const u8* from, u32 bytes) {
  u16 two;
  u32 four;
  u64 eight;
  switch (bytes) {
    case 2: return std::memcpy(&two, from, 2), two;
    case 4: return std::memcpy(&four, from, 4), four;
    default: return std::memcpy(&eight, from, 8), eight;
  }
}
void put_word(u8* to, u64 word, u32 bytes) {
  switch (bytes) {
    case 2: std::memcpy(to, &word, 2); break;
    case 4: std::memcpy(to, &word, 4); break;
    default: std::memcpy(to, &word, 8);
  }
}

// A compare-and-swap of what was read there before, and nobody asks whether it succeeded.
void report_unchecked(Warp& w, const Access& a, const Region* common) {
  Event e = event_at(w, UNCHECKED_SWAP, a.first());
  e.address = a.at[a.first()];
  e.size = a.bytes;
  e.space = GLOBAL;
  e.write = true;
  if (common) {
    e.region = w.program->hints[w.pc].region;
    e.region_start = common->base;
    e.region_size = common->size;
  }
  w.home->machine->report(e);
}

void atomic_on(Warp& w, const Ins& i, Access& a, u8 space, Change change) {
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
    if (i.order() & (ACQUIRES | RELEASES)) settle_writes(*w.home);
    if (i.order() & EXPECTS_LOADED && a.mask) report_unchecked(w, a, common);
    trace(w, a, o.old < 0 ? WRITTEN_STRONGLY : Use(WRITTEN_STRONGLY | READ_STRONGLY));
  }
  const u32 bytes = i.width, in_register = std::max(bytes, 4u);
  const u8 *by = lanes<u8>(w, o.value),
           *swapped = lanes<u8>(w, o.swapped < 0 ? o.value : o.swapped);
  u8* const old = o.old < 0 ? nullptr : lanes<u8>(w, o.old);
  const bool shared = space == SHARED;
  Signal signal(w, space, i.order());
  u32 undefined = 0, origin = w.pc;
  for (int l = 0; l < LANES; ++l) {
    if (!(a.mask >> l & 1)) continue;
    i64 index = w.program->hints[w.pc].region;
    Region* r = space == SHARED ? nullptr
                : common        ? common
                                : w.block->machine->find(a.at[l], index);
    u8* at = r ? r->at(a.at[l]) : w.block->shared.data() + a.at[l];
    const u32 place = u32(l) * in_register;
    const u64 before = word_at(at, bytes);
    const u64 after = change(before, word_at(by + place, bytes), word_at(swapped + place, bytes));
    const bool same = before == after;
    if (old) {
      const bool locks = o.swapped >= 0 && i.order() & AWAITED && !same;
      locks ? signal.lock(a.at[l]) : signal.update(a.at[l], same);
      const u32 cell = 1u << (shared ? w.program->shared_shift : w.program->global_shift);
      await(w, shared ? shared_place(*w.block, u32(a.at[l])) : a.at[l], bytes, cell);
    }
    if (!same) signal.release(a.at[l]);
    if (r && o.swapped >= 0)
      for (u32 k = 0; k < bytes; k += 1u << w.program->global_shift)
        w.block->machine->compared.insert(a.at[l] + k);
    const bool counts = r && bytes == 4 && a.at[l] == w.block->machine->counter();
    if (counts && (before ^ after) >> 31) signal.open_grid();
    w.block->machine->changes += !same;
    ++w.block->machine->stores;
    if (!r || !r->made_up) put_word(at, after, bytes);
    bool bad;
    if (r) {
      same ? look_at_word(w, l, a.at[l]) : change_word(w, l, *r, index, a.at[l], bytes, before);
      bad = !r->all_defined && !r->defined[(a.at[l] - r->base) >> w.program->global_shift];
      if (bad) {
        Event e = event_at(w, UNDEFINED_STORE, l);
        e.region = index;
        e.region_start = e.address = r->base;
        w.block->machine->report(e);
      }
      global_write(w, l, *r, index, a.at[l], bytes, false, true, true);
    } else {
      bad = is_undefined(*w.block, u32(a.at[l]) >> w.program->shared_shift);
      shared_write(w, l, u32(a.at[l]), bytes, false, true, bad ? w.pc : DEFINED);
    }
    undefined |= u32(bad) << l;
    if (old) put_word(old + place, before, in_register);
  }
  if (old && (undefined || w.tainted)) mark_undefined(w, o.old, undefined, origin);
}

Flow run_atomic(Warp& w, const Ins& i, Change change) {
  in_spaces(w, i, [&](Access& a, u8 space) { atomic_on(w, i, a, space, change); });
  const i32 old = operands<AtomicOperands>(i).old;
  if (old < 0) return Flow::next;
  return look_at(w, i, old, std::max<u32>(i.width, 4));
}

// The compiler takes seconds where each operation has a copy of more than this.
template <class T> T from_word(u64 word) {
  using Bits =
      std::conditional_t<sizeof(T) == 8, u64, std::conditional_t<sizeof(T) == 4, u32, u16>>;
  return std::bit_cast<T>(Bits(word));
}
template <class T, class F> u64 change(u64 before, u64 by, u64 swapped) {
  const T after = F{}(from_word<T>(before), from_word<T>(by), from_word<T>(swapped));
  if constexpr (std::is_floating_point_v<T>) return std::bit_cast<BitsOf<T>>(after);
  else return std::make_unsigned_t<T>(after);
}
template <class T, class F> Flow atomic(Warp& w, const Ins& i) {
  return run_atomic(w, i, change<T, F>);
}

struct Atomics {
  Table operations;
  std::vector<Reduction> reductions;

  void add(std::string_view name, u32 bytes, Handler, Change);
};

template <u32 bytes> bool is_sound(const Program&, const Ins& i) {
  return i.width == bytes && i.vec == 1 &&
         (i.space == GLOBAL || i.space == SHARED || i.space == GENERIC);
}

void Atomics::add(std::string_view name, u32 bytes, Handler handler, Change change) {
  const std::string_view reduces = name.substr(std::string_view("atom.").size());
  const bool compares = reduces.starts_with("cas.");
  if (!reduces.starts_with("exch") && !compares && !reduces.ends_with("x2"))
    reductions.push_back({reduces, bytes, change});
  const char type = bytes == 8 ? 'w' : 'n', old = bytes == 8 ? 'W' : 'N';
  sim::add(operations, name, handler,
           std::string{old, '>', type, compares ? type : '-', '-', 'a', 'i'},
           bytes == 2   ? is_sound<2>
           : bytes == 4 ? is_sound<4>
                        : is_sound<8>);
}

template <class T, class F> void atom(Atomics& t, const char* name, F) {
  t.add(name, sizeof(T), atomic<T, F>, change<T, F>);
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

void Reduction::apply(u8* to, const u8* from) const {
  const u64 by = word_at(from, bytes);
  put_word(to, change(word_at(to, bytes), by, by), bytes);
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
