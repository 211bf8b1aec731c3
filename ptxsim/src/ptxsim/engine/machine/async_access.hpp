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
  u32 pc;
  Epoch issued;
  u32 group;
  bool wgmma;               // its groups are the warp's, those of bulk copies a thread's
  u32 first, last;          // addresses in 16 bytes
  std::vector<u64> pieces;  // of 16 bytes, as bits from `first` on

  Epoch by_wgmma() const { return {issued.thread(), group + 1}; }  // as BY_WGMMA has it
  bool touches(u32 address, u32 bytes) const {
    for (u32 piece = address / 16; piece <= (address + bytes - 1) / 16; ++piece)
      if (piece >= first && piece <= last &&
          pieces[(piece - first) / 64] >> (piece - first) % 64 & 1)
        return true;
    return false;
  }
};

}  // namespace sim
