// Warps that give way before accesses that may synchronise, as in probabilistic concurrency
// testing: in every order but that of the numbers, so often at most, and the same way each time.
#pragma once

#include "../machine/warp.hpp"
#include "../program/instruction.hpp"

namespace sim {

// Whether the warp lets others go first, before it executes `i`. Between a look at a word and the
// write that follows, others may then do the same.
bool gives_way(Warp& w, const Ins& i);

// A number that looks random (SplitMix64).
inline u64 mixed(u64 x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

}  // namespace sim
