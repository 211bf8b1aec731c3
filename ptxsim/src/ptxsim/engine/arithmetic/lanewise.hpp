// Lane-wise operations from plain functions: `lanewise(t, "add.f32", [](float a, float b) { return
// a + b; })` adds a handler that reads two float registers and writes one. The function's own types
// say how registers are read: bool is a predicate, 16-bit types sit in the low half of a 32-bit
// slot.
//
// Operations are named as PTX names them once modifiers that do not change the result are dropped
// (lower.py does that).
#pragma once

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

// Runs the stateless function object F over the lanes; its signature gives the register types.
template <class F> struct Signature;
template <class F, class R, class... A> struct Signature<R (F::*)(A...) const> {
  template <size_t... I> static Flow run(Warp& w, const Ins& i, std::index_sequence<I...>) {
    const F f{};
    std::tuple<Source<A>...> in{Source<A>(w, i.input(I))...};
    if constexpr (std::is_same_v<R, bool>) {
      u32 mask = 0;
      for (int l = 0; l < LANES; ++l) mask |= u32(f(std::get<I>(in)[l]...)) << l;
      w.preds[i.output()] = (w.preds[i.output()] & ~w.exec) | (mask & w.exec);
    } else {
      using Cell = typename Lane<R>::Cell;
      Cell* out = static_cast<Cell*>(w.slot(i.output()));
      if (w.whole()) {
#pragma GCC ivdep
        for (int l = 0; l < LANES; ++l) out[l] = to_cell<R>(f(std::get<I>(in)[l]...));
      } else {
        const u32 exec = w.exec;
#pragma GCC ivdep
        for (int l = 0; l < LANES; ++l) {
          Cell value = to_cell<R>(f(std::get<I>(in)[l]...));
          out[l] = exec >> l & 1 ? value : out[l];
        }
      }
    }
    return Flow::next;
  }
  static Flow handler(Warp& w, const Ins& i) { return run(w, i, std::index_sequence_for<A...>{}); }
  static constexpr char shape[] = {letter<R>, '>', letter<A>..., 0};
};
template <class F> using SignatureOf = Signature<decltype(&std::remove_const_t<F>::operator())>;

template <class F> Flow apply(Warp& w, const Ins& i) { return SignatureOf<F>::handler(w, i); }
template <class F> void lanewise(Table& t, const char* name, F) {
  add(t, name, apply<F>, SignatureOf<F>::shape);
}

// The same under another rounding mode; the opaque calls keep the compiler from moving lanes
// across.
template <int mode, class F> Flow under_mode(Warp& w, const Ins& i) {
  std::fesetround(mode);
  const Flow flow = apply<F>(w, i);
  std::fesetround(FE_TONEAREST);
  return flow;
}
struct Directed { const char *zero, *down, *up; };
template <class F> void rounded(Table& t, Directed names, F) {
  constexpr const char* shape = SignatureOf<F>::shape;
  add(t, names.zero, under_mode<FE_TOWARDZERO, F>, shape);
  add(t, names.down, under_mode<FE_DOWNWARD, F>, shape);
  add(t, names.up, under_mode<FE_UPWARD, F>, shape);
}

}  // namespace sim
