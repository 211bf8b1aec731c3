// The shadow of shared memory.
#pragma once

#include "region.hpp"

namespace sim {

// Shadow of one cell of shared memory.
struct Cell {
  struct Mark {
    Epoch epoch;
    u32 pc;
  };
  Mark writer;  // never: nobody. pc bit 31: an undefined value, its origin
  // The two latest reads by different threads. pc bits: BY_WGMMA, and, of the latest, BEFORE_WRITE.
  Mark reader, reader2;
  u32 pending, pending_pc;  // thread + 1 of a cp.async in flight
};
constexpr u32 UNDEFINED_BIT = 0x80000000u;
constexpr u32 BY_WGMMA = 0x80000000u;      // the epoch's time is its group's number, + 1
constexpr u32 BEFORE_WRITE = 0x40000000u;  // the cell has been written since
constexpr Epoch BEFORE_ALL{1, 0};          // a writer that comes before every access
constexpr Epoch BY_PEER{1023, ~0u >> 10};  // a writer of another block of the cluster

// What other blocks of the cluster did last to a cell of shared memory. writer: where Cell::writer
// is BY_PEER.
struct PeerCell { Region::Stamp writer, reader, reader2; };

// Of several extern arrays, by Program::extern_arrays: through which one the cell was last written,
// and what came of it.
struct ExternCell {
  Region::Stamp writer;  // block: 0: nobody, or nobody knows through which
  Region::Stamp reader;  // through an array whose value the writer overwrote; block: 0: none
  u8 written_as, read_as;
  u8 overwritten;  // arrays, as bits, whose values were here
  bool read_back;  // through the array that it was written through
};

// Beside the program counter of an access, here and in a Region::Stamp.
constexpr u32 ATOMIC_BIT = 0x40000000u;
constexpr u32 SAME_BIT = 0x80000000u;  // of writes: they changed nothing in this launch
constexpr u32 PC_MASK = 0x3fffffffu;

}  // namespace sim
