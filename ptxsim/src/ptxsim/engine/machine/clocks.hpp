// Vector clocks: what happened before the present of a warp.
#pragma once

#include <memory>
#include <unordered_map>

#include "epoch.hpp"

namespace sim {

constexpr u32 WARPGROUPS = 8;  // of a block; each has a barrier of its own, for wgmma.fence
constexpr u32 WARPS_OF_A_GROUP = 4;

// A vector clock of the warps of several blocks (checks/release_acquire.cpp).
struct GridClock;
using GridClockPtr = std::shared_ptr<const GridClock>;

// Of every warp of a block the latest time that is covered, and of other blocks.
struct VectorClock {
  u32 warps[32] = {};
  u32 products[WARPGROUPS] = {};  // groups of wgmma that have ended
  GridClockPtr others;

  void join(const VectorClock& more);
  void join_own(const VectorClock& more);  // of the block alone
  bool none() const;
};

// What a warp has acquired, or what was released to a barrier.
struct Clocks : VectorClock {
  u32 proxy[32] = {};  // of every warp the time that a fence.proxy.async has shown the async proxy
  // At the last fence of any scope, which flags set since release to the threads of the block, and
  // at the last one of the whole device, which they release to all.
  VectorClock block_fence, device_fence;
  // Released by flags that were read: the next fence acquires it. Until then it orders accesses
  // that synchronise, but no plain ones.
  VectorClock flag_clock;

  void join(const Clocks& more);
};

// Clocks released to flags and counters, by address.
using Flags = std::unordered_map<u64, GridClockPtr>;

}  // namespace sim
