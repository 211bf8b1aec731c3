// Races for global memory, and its undefined values.
#pragma once

#include "../memory/access.hpp"

namespace sim {

// Whether something that a lane reads is undefined. checked: it may race.
bool global_read(Warp& w, int lane, Region& r, i64 index, u64 address, u32 bytes, bool checked);
// The same for a bulk copy, which sees plain writes only behind a fence.proxy.async.
bool global_read_by_proxy(Warp& w, int lane, Region& r, i64 index, u64 address, u32 bytes);
void global_write(Warp& w, int lane, Region& r, i64 index, u64 address, u32 bytes, bool same,
                  bool atomic, bool checked);
// What nobody may write while the launch runs, a lane reads.
void check_read_only(Warp& w, int lane, const Region& r, i64 index, u64 address, u32 bytes);
// Keeps in mind what the lanes of `a` read, for later writes of others. common: where all of them
// lie; null if they lie in several allocations.
void remember_reads(Warp& w, Region* common, const Access& a);

// Keeps, where that is asked for, what the lanes of `a` did to global memory.
void trace(Warp& w, const Access& a, Use use);

}  // namespace sim
