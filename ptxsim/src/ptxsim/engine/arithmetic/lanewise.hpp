// Lane-wise operations from plain functions: `lanewise(t, "add.f32", [](float a, float b) { return
// a + b; })` adds a handler that reads two float registers and writes one. The function's own types
// say how registers are read: bool is a predicate, 16-bit types sit in the low half of a 32-bit
// slot.
//
// Operations are named as PTX names them once modifiers that do not change the result are dropped
// (lower.py does that).
#pragma once

#include <bit>
#include <cfenv>

#include "../machine/warp.hpp"
#include "../program/operations.hpp"
#include "half.hpp"

namespace sim {

// How a C++ type sits in a register lane.
template <class T> struct Lane { using Cell = T; };
template <> struct Lane<u8> { using Cell = u32; };
template <> struct Lane<i8> { using Cell = u32; };
template <> struct Lane<u16> { using Cell = u32; };
template <> struct Lane<i16> { using Cell = u32; };
template <> struct Lane<Half> { using Cell = u32; };
template <> struct Lane<Bfloat> { using Cell = u32; };

template <class T> inline T from_cell(typename Lane<T>::Cell c) {
  if constexpr (sizeof(T) < 4) {
    typename std::conditional<sizeof(T) == 1, u8, u16>::type bits = c;
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  } else {
    return c;
  }
}

template <class T> inline typename Lane<T>::Cell to_cell(T value) {
  if constexpr (sizeof(T) < 4) {
    typename std::conditional<sizeof(T) == 1, u8, u16>::type bits;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
  } else {
    return value;
  }
}

template <class T> struct Source {
  const typename Lane<T>::Cell* lanes;
  Source(const Warp& w, i32 o) : lanes(static_cast<const typename Lane<T>::Cell*>(w.slot(o))) {}
  T operator[](int l) const { return from_cell<T>(lanes[l]); }
};
// How an operand of this type is written in a shape.
template <class T> constexpr char letter = sizeof(typename Lane<T>::Cell) == 8 ? 'w' : 'n';
template <> inline constexpr char letter<bool> = 'p';

template <> struct Source<bool> {
  u32 mask;
  Source(const Warp& w, i32 o) : mask(w.preds[o]) {}
  bool operator[](int l) const { return mask >> l & 1; }
};

template <class Cell> [[gnu::noinline]] void put_some(u32 exec, const Cell* from, Cell* to) {
  for (int l = 0; l < LANES; ++l) to[l] = exec >> l & 1 ? from[l] : to[l];
}

// Runs the stateless function object F over the lanes; its signature gives the register types.
template <class F, class R, class Numbers, class... A> struct Lanewise;
template <class F, class R, size_t... I, class... A>
struct Lanewise<F, R, std::index_sequence<I...>, A...> {
  static Flow run(Warp& w, const Ins& i, const Source<A>... in) {
    const F f{};
    if constexpr (std::is_same_v<R, bool>) {
      u32 mask = 0;
      for (int l = 0; l < LANES; ++l) mask |= u32(f(in[l]...)) << l;
      w.preds[i.output()] = (w.preds[i.output()] & ~w.exec) | (mask & w.exec);
    } else {
      using Cell = typename Lane<R>::Cell;
      Cell* const to = static_cast<Cell*>(w.slot(i.output()));
      Cell some[LANES];  // where not all lanes execute
      Cell* const out = w.whole() ? to : some;
#pragma GCC ivdep
      for (int l = 0; l < LANES; ++l) out[l] = to_cell<R>(f(in[l]...));
      if (out == some) put_some(w.exec, some, to);
    }
    return Flow::next;
  }
  static Flow handler(Warp& w, const Ins& i) { return run(w, i, Source<A>(w, i.input(I))...); }
  static constexpr char shape[] = {letter<R>, '>', letter<A>..., 0};
};
template <template <class...> class How, class Method> struct Signature;
template <template <class...> class How, class F, class R, class... A>
struct Signature<How, R (F::*)(A...) const> {
  using Run = How<F, R, std::index_sequence_for<A...>, A...>;
};
template <template <class...> class How, class F> using Run =
    typename Signature<How, decltype(&std::remove_const_t<F>::operator())>::Run;

template <class F> void lanewise(Table& t, const char* name, F) {
  add(t, name, Run<Lanewise, F>::handler, Run<Lanewise, F>::shape);
}

// The same for what is rare or slow anyway: these share one loop, because the compiler takes
// seconds for hundreds of them.
template <class T> using BitsOf = std::conditional_t<sizeof(typename Lane<T>::Cell) == 8, u64, u32>;
template <class R, size_t... I, class... A>
[[gnu::noinline]] Flow each_lane(Warp& w, const Ins& i, std::index_sequence<I...>, R (*f)(A...)) {
  if constexpr (std::is_same_v<R, bool>) {
    u32 mask = 0;
    for (int l = 0; l < LANES; ++l) mask |= u32(f(lanes<A>(w, i.input(I))[l]...)) << l;
    w.preds[i.output()] = (w.preds[i.output()] & ~w.exec) | (mask & w.exec);
  } else {
    R* const out = lanes<R>(w, i.output());
    for (int l = 0; l < LANES; ++l)
      if (w.exec >> l & 1) out[l] = f(lanes<A>(w, i.input(I))[l]...);
  }
  return Flow::next;
}
template <class T> T from_bits(BitsOf<T> bits) {
  return from_cell<T>(std::bit_cast<typename Lane<T>::Cell>(bits));
}
template <class F, class R, class Numbers, class... A> struct Rare {
  static auto one(BitsOf<A>... bits) {
    const R result = F{}(from_bits<A>(bits)...);
    if constexpr (std::is_same_v<R, bool>) return result;
    else return std::bit_cast<BitsOf<R>>(to_cell<R>(result));
  }
  static Flow handler(Warp& w, const Ins& i) { return each_lane(w, i, Numbers{}, one); }
};
template <class F> void rarely(Table& t, const char* name, F) {
  add(t, name, Run<Rare, F>::handler, Run<Lanewise, F>::shape);
}

// Rarely where T has 16 bits.
template <class T, class F> void lanewise_on(Table& t, const char* name, F f) {
  if constexpr (sizeof(T) == 2) rarely(t, name, f);
  else lanewise(t, name, f);
}

// The same under another rounding mode; the opaque calls keep the compiler from moving lanes
// across.
template <int mode, class F> Flow under_mode(Warp& w, const Ins& i) {
  std::fesetround(mode);
  const Flow flow = Run<Lanewise, F>::handler(w, i);
  std::fesetround(FE_TONEAREST);
  return flow;
}
struct Directed { const char *zero, *down, *up; };
template <class F> void rounded(Table& t, Directed names, F) {
  constexpr const char* shape = Run<Lanewise, F>::shape;
  add(t, names.zero, under_mode<FE_TOWARDZERO, F>, shape);
  add(t, names.down, under_mode<FE_DOWNWARD, F>, shape);
  add(t, names.up, under_mode<FE_UPWARD, F>, shape);
}

}  // namespace sim
