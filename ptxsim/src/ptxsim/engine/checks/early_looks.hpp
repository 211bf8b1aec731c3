// Looks at words that others change, in no order with the look: legal, since both synchronise, but
// what goes into a result then depends on who came first. These events count only where another
// order does change the results.
#pragma once

#include "../machine/machine.hpp"

namespace sim {

// The lane looks at a word in a way that synchronises, and changes nothing.
void look_at_word(Warp& w, int lane, u64 address);
// The lane is about to change a word, by an atomic operation or a store that synchronises.
void change_word(Warp& w, int lane, const Region& r, i64 index, u64 address, u32 bytes, u64 before);
// Where memory may still show the lane an older value, and does half the time: its bytes; else
// null. Only what no fence of its writer has followed, and only to a block that has acquired
// nothing from another and has not seen the new value.
u8* value_before(Warp& w, int lane, const Region& r, i64 index, u64 address, u32 bytes);
// All that the block wrote is behind a fence, and so seen by whoever asks from now on.
void settle_writes(Block& b);
// A plain write, which no older value outlives.
void forget_before(Machine& m, u64 address);

}  // namespace sim
