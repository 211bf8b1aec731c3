// Two accesses to one place that nothing orders: whether that is a race depends on both.
//
// Atomic and relaxed accesses do not race with each other if the scope of each covers both threads.
// Nor do volatile ones, of a word that somebody asks until it changes; all other words are data, so
// nobody knows about a volatile access before the launch has ended.
#pragma once

#include "../machine/machine.hpp"

namespace sim {

enum class Strength : u8 { plain, is_volatile, synchronises };
Strength strength(const Program& p, u32 pc);  // of the access by this instruction
// Whether two atomic operations on one place see each other as such.
bool scopes_meet(const Warp& w, const Region::Stamp& other);

// Where an access was, for `awaited` and `suspended`.
inline u64 shared_place(const Block& b, u32 address) {
  return SHARED_WINDOW | u64(b.linear) << 24 | address;
}
// Somebody waits for the word to change, or asks whether it has.
void await(Warp& w, u64 place, u32 bytes, u32 cell);

// The warp's access, which is `e`, and the access `other` are in no order that plain
// accesses could rely on. first: nothing else has written there; that the other one found nothing
// is then this race.
void conflict(Warp& w, Event e, const Region::Stamp& other, u64 place, bool first);
// The warp reads a word of shared memory that nobody has written yet.
[[gnu::cold]] void found_unwritten(Warp& w, u64 place);
// The warp reads at e.address what an atomic operation left there, in no order with it. A plain
// read may be the first guess of a loop around atomicCAS, which is known when the launch has ended.
[[gnu::cold]] void look_at_atomic(Warp& w, const Event& e);
// At the end of a launch: reports suspended races, unless somebody asked or compared the word, and
// drops what comes of reads that were too early: that they find nothing is the race.
void conclude(Machine& m);

}  // namespace sim
