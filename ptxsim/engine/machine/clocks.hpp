// Vector clocks: what is ordered before the present of a warp.
#pragma once

#include <memory>
#include <unordered_map>

#include "../types.hpp"

namespace sim {

constexpr u32 WARPGROUPS = 8;  // of a block; each has a barrier of its own, for wgmma.fence
constexpr u32 WARPS_OF_A_GROUP = 4;

// What is known of the warps of other blocks (checks/knowledge.cpp).
struct Knowledge;
using Known = std::shared_ptr<const Knowledge>;

// A vector clock: of every warp of the block the latest moment that is ordered before, and what is
// known of other blocks.
struct Clocks {
  u32 warps[32] = {};
  u32 fenced[32] = {};            // what a fence.proxy.async has shown of them to the async proxy
  u32 products[WARPGROUPS] = {};  // groups of wgmma that have ended
  Known others;

  void join(const Clocks& more);
};

// Clocks that travel with the values of flags and counters, by address.
using Flags = std::unordered_map<u64, Known>;

}  // namespace sim
