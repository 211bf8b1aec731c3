// Elements of global memory whose writes somebody watches.
#pragma once

#include <unordered_map>
#include <vector>

#include "../shared.hpp"

namespace sim {

struct Warp;

struct WatchedElement {
  u64 base, size;  // of its memory
  u64 index;
  u64 width;      // bytes; 0: as many as the instruction that writes has
  u64 usual{4};   // the same of bulk copies, which do not say
  u64 last[4]{};  // what it holds if it has 1, 2, 4, 8 bytes
};

// How a register came to its value in one lane, as Write has it.
struct Definition {
  u32 pc = ~0u, inputs = 0;
  u64 values[3]{}, sources[3]{};
  bool loaded = false;  // the one input is what lay there in memory
};

struct Watching {
  std::vector<WatchedElement> elements;
  std::vector<Write> writes;  // of the last launch, and how many more there were than `most`
  u64 most = 0, left_out = 0;
  std::unordered_map<const Warp*, std::vector<Definition>> definitions;  // by slot and lane
};

}  // namespace sim
