// What a request to memory costs.
#pragma once

#include "access.hpp"

namespace sim {

// True when the access repeats the pattern of the last one by the same instruction and stays in the
// same region: it is aligned, in bounds, and counted then, and nothing else need be looked at.
bool familiar(Warp& w, const Access& a, u8 space);

void count_global(Warp& w, const Access& a);
void count_source(Warp& w, const Access& a);  // the global side of cp.async
void count_zeros(Warp& w);                    // the copy just counted writes some that nobody reads
void count_shared(Warp& w, const Access& a);

u32 shared_wavefronts(const u32* at, u32 mask, u32 bytes);  // of one access

}  // namespace sim
