// Accesses between the blocks of a cluster: what a block does in the shared memory of another one
// must be ordered with what that block, and the others, do there, and with its start and its end.
#pragma once

#include "../machine/machine.hpp"

namespace sim {

// Whether an access, of whatever block, is ordered before this warp's now.
bool in_order(const Warp& w, int lane, const Region::Stamp& access);
// The same of a read that the block's own warps left in a cell.
bool read_in_order(const Warp& w, int lane, Epoch read, u32 pc);
Region::Stamp last_writer(const Block& b, u32 cell);

// The warp turns to another block, which must have started.
void visit(Warp& w, int lane, Block& to);
// Whether the warp is at home, or comes after the start of the block that it visits: elsewhere that
// alone is the finding.
bool block_has_started(const Warp& w);
// The block is at its end: nobody may visit it any more.
void check_visitors(const Block& b);

// Races of a write to shared memory of which one side is a visitor.
void check_write_among_peers(Warp& w, int lane, u32 address, u32 bytes, bool same, bool atomic);
// Of a visitor: keeps its write in mind, `pc` being what Cell::writer_pc holds.
void keep_write(Warp& w, int lane, u32 address, u32 bytes, u32 pc);

}  // namespace sim
