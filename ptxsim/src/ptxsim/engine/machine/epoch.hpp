// When a thread of a block did something.
#pragma once

#include "../types.hpp"

namespace sim {

// A thread, by its number in the block, and the time by its warp's clock; false: never.
class Epoch {
 public:
  constexpr Epoch() = default;
  constexpr Epoch(u32 thread, u32 time) : bits_(thread | time << THREAD_BITS) {}

  constexpr u32 thread() const { return bits_ & ((1u << THREAD_BITS) - 1); }
  constexpr u32 warp() const { return thread() / LANES; }
  constexpr u32 lane() const { return bits_ % LANES; }
  constexpr u32 time() const { return bits_ >> THREAD_BITS; }
  constexpr u32 step() const { return bits_ & ~(LANES - 1u); }  // warp and time as one number
  constexpr Epoch of_lane(u32 lane) const {                     // where this one is of lane 0
    Epoch same;
    same.bits_ = bits_ | lane;
    return same;
  }
  constexpr explicit operator bool() const { return bits_; }
  constexpr bool operator==(const Epoch&) const = default;

 private:
  static constexpr u32 THREAD_BITS = 10;
  u32 bits_ = 0;
};

}  // namespace sim
