// What atomic operations leave in memory, for reductions that are under way when their thread goes
// on: red.async, cp.reduce.async.bulk.
#pragma once

#include <string_view>
#include <vector>

#include "../machine/warp.hpp"

namespace sim {

struct Reduction {
  std::string_view name;  // such as "add.u32"
  u32 bytes;
  void (*apply)(u8* to, const u8* from);
};

const std::vector<Reduction>& reductions();
// The one that the warp's instruction is named after.
const Reduction& reduction_of(const Warp& w);
// PTX has only these for shared memory.
bool is_for_shared(const Reduction& r);

}  // namespace sim
