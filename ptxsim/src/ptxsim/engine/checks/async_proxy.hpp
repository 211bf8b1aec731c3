// What bulk copies and wgmma read of shared memory.
#pragma once

#include <utility>
#include <vector>

#include "../machine/machine.hpp"

namespace sim {

// What one asynchronous instruction reads of shared memory, piece by piece: it checks that the
// data are there for the async proxy, and keeps what is read until somebody waits for it.
class AsyncReader {
 public:
  AsyncReader(Warp& w, int lane) : w_(w), lane_(lane) {}
  // 16 bytes, the first of which are needed; the address is in bounds and a multiple of 16.
  void read(u32 address, u32 needed = 16);
  bool undefined() const { return undefined_; }
  bool take_undefined() { return std::exchange(undefined_, false); }  // since the last call
  u32 origin() const { return origin_; }
  // They are read until group `group` is waited for.
  void keep(u32 group, bool wgmma);

 private:
  Warp& w_;
  int lane_;
  std::vector<u32> pieces_;
  bool undefined_ = false;
  u32 origin_ = 0;
  Region::Stamp seen_{};  // the last writer of another block that was in order
};
// A finding where a bulk copy writes what threads stored there, unseen by the async proxy.
void check_overwritten(Warp& w, int lane, u32 address, u32 bytes);
// The same where it completes on an mbarrier in `w.block`, and the async proxy has not been shown
// the initialisation.
void check_init(Warp& w, int lane, MBarrier& b);
// Nobody overwrote what these read; from now on they are reads that ended at `end`.
void finish_async_reads(Block& b, const AsyncReads& reads, Epoch end);
// The same of a copy to another block, which has landed there.
void finish_copy(Block& b, const Region::Stamp& copy);
// The block is at its end: no copy to global memory may still read its shared memory.
void check_bulk_stores(const Block& b);

}  // namespace sim
