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

// Of every warp of the block the latest moment that something covers, and of other blocks.
struct Moments {
  u32 warps[32] = {};
  u32 products[WARPGROUPS] = {};  // groups of wgmma that have ended
  Known others;

  void join(const Moments& more);
  void join_own(const Moments& more);  // of the block alone
  bool none() const;
};

// A vector clock: of every warp of the block the latest moment that is ordered before, and what is
// known of other blocks.
struct Clocks : Moments {
  u32 fenced[32] = {};  // what a fence.proxy.async has shown of them to the async proxy
  // Of all this, what a fence has covered since: one of any scope, so that a flag tells it to the
  // threads of the block, and one that tells it to all. In place of a release.
  Moments released, published;
  // What flags have told and no fence has made certain: it orders accesses that synchronise, but no
  // plain ones. In place of an acquire.
  Moments seen;

  void join(const Clocks& more);
};

// Clocks that travel with the values of flags and counters, by address.
using Flags = std::unordered_map<u64, Known>;

}  // namespace sim
