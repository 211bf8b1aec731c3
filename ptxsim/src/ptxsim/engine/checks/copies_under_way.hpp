// Asynchronous copies in global memory: what they may still write there, and may still read.
//
// What a bulk copy stores is there at once, but its epoch is a time that never comes, so that all
// that touches it races, until the thread that issued the copy has waited for its group. Then the
// thread has written it now. What a copy to shared memory reads there it may read until somebody
// has acquired that it has landed.
#pragma once

#include "../machine/machine.hpp"

namespace sim {

// The lane's copy has just written these bytes.
void hold_back(Warp& w, int lane, Region& r, u64 address, u32 bytes);
// Of the executing lanes' groups all but the `keep` latest have been written.
void finish_stores(Warp& w, i64 keep);
bool may_be_missing(const Region::Stamp& write);

// A copy of the warp's block or cluster that may still read some of these bytes; block: 0 if none.
Region::Stamp still_reads(const Warp& w, u64 address, u32 bytes);

}  // namespace sim
