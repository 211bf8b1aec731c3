// What a program may take.
#pragma once

#include <cstddef>

#include "shared.hpp"

namespace sim {

// More than one, so that %smid differs between blocks, and fewer than any GPU of a lab has, so that
// what a program keeps for each multiprocessor is large enough.
constexpr u32 MULTIPROCESSORS = 16;

constexpr u32 SHARED_UNIT = 128;  // bytes: shared memory is given out in multiples of it

// What one block may take. More than any GPU has; it keeps a program from taking all memory here.
constexpr u32 MAX_SHARED_BYTES = 1 << 20;     // dynamic, and static, of a block
constexpr u64 MAX_BLOCK_BYTES = 2304u << 20;  // a block's registers, shadow and lane-private memory
constexpr u64 MAX_RESIDENT_BYTES = 1u << 30;  // all blocks in flight together
constexpr u64 HEAP_BYTES = 8u << 20;          // of malloc in kernels: CUDA's default
constexpr size_t MAX_FREED = 1 << 16;         // allocations there that are remembered when freed
// A piece that stands for a larger region: what one instruction can read, from any of 16 bytes on.
constexpr u64 MADE_UP_BYTES = MAX_SHARED_BYTES + 16;
constexpr size_t MOST_EXTERNS = 8;   // extern shared arrays that are told apart
constexpr size_t MAX_EVENTS = 4096;  // different findings of one launch

}  // namespace sim
