// Asynchronous accesses that are under way.
#pragma once

#include <vector>

#include "region.hpp"

namespace sim {

struct AsyncCopy {
  u32 pc, mask, bytes;
  u32 target[LANES], group[LANES];
  Extent source[LANES];
  u8 data[LANES][16];
};

// What an asynchronous operation still reads of shared memory: wgmma, a bulk copy.
struct AsyncReads {
  u32 pc, thread, group;
  bool wgmma;               // its groups are the warp's, those of bulk copies a thread's
  u32 first, last;          // addresses in 16 bytes
  std::vector<u64> pieces;  // of 16 bytes, as bits from `first` on

  u32 stamp() const { return (thread & 1023) | (group + 1) << 10; }  // of a wgmma
  bool touches(u32 address, u32 bytes) const {
    for (u32 piece = address / 16; piece <= (address + bytes - 1) / 16; ++piece)
      if (piece >= first && piece <= last &&
          pieces[(piece - first) / 64] >> (piece - first) % 64 & 1)
        return true;
    return false;
  }
};

}  // namespace sim
