// What atomic operations leave in memory, for reductions that are under way when their thread goes
// on: red.async, cp.reduce.async.bulk.
#pragma once

#include <string_view>
#include <vector>

#include "../machine/warp.hpp"

namespace sim {

// What an atomic operation makes of a word; swapped: what cas writes.
using Change = u64 (*)(u64 before, u64 by, u64 swapped);

struct Reduction {
  std::string_view name;  // such as "add.u32"
  u32 bytes;
  Change change;

  void apply(u8* to, const u8* from) const;
};

const std::vector<Reduction>& reductions();
// The one that the warp's instruction is named after.
const Reduction& reduction_of(const Warp& w);
// PTX has only these for shared memory.
bool is_for_shared(const Reduction& r);

}  // namespace sim
