// Several extern shared arrays, which all begin at one address: where a value was written through
// one, overwritten through another, and is then read through both.
//
// A program may use one memory by several names, one after the other, or to look at the same bytes
// as another type. So it is said only where a value is read through the array that it was written
// through, and also through one that held a value there before.
#pragma once

#include "../machine/machine.hpp"

namespace sim {

void extern_read(Warp& w, int lane, u32 address, u32 bytes);
void extern_write(Warp& w, int lane, u32 address, u32 bytes, bool same, bool atomic);
// How far behind the first array the later one of each finding would have to begin.
void suggest_offsets(Machine& m);

}  // namespace sim
