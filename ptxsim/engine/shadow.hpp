// What every memory access shares: lane addresses, alignment, cost patterns, race and
// definedness checks on the shadow of shared and global memory.
#pragma once

#include <utility>

#include "lanes.hpp"

namespace sim {

constexpr u32 ATOMIC_BIT = 0x40000000u;
constexpr u32 PC_MASK = 0x3fffffffu;

// The lanes of one access: addresses (inactive lanes repeat the first active one) and the mask of
// lanes that may still go ahead.
struct Access {
  u64 at[LANES];
  u32 mask;
  u32 bytes;  // per lane, all vector elements together
  int first() const { return __builtin_ctz(mask); }
};

void resolve_addresses(Warp& w, const Ins& i, Access& a);
void drop_misaligned(Warp& w, Access& a, u8 space, bool write);
// Drop lanes outside every allocation (global, constant) or array (shared); returns the one region
// all remaining lanes lie in, or null when they lie in several.
Region* settle_global(Warp& w, Access& a, u8 space, bool write);
void settle_shared(Warp& w, Access& a, bool write);
// What the current instruction did last; blank when that was in another space.
inline Hint& hint_of(Warp& w, u8 space) {
  Hint& hint = w.program->hints[w.pc];
  if (__builtin_expect(hint.space != space, 0)) {
    hint = Hint{};
    hint.space = space;
  }
  return hint;
}
// True when the access repeats the pattern of the last one by the same instruction and stays in the
// same region: it is aligned, in bounds, and counted then, and nothing else need be looked at.
bool familiar(Warp& w, const Access& a, u8 space);

void count_global(Warp& w, const Access& a);
void count_source(Warp& w, const Access& a);  // the global side of cp.async
void count_shared(Warp& w, const Access& a);
void count_zeros(Warp& w);  // the copy just counted writes some that nobody reads

bool report_shared_read(Warp& w, int lane, u32 address, u32 bytes, const Cell& c, bool plain,
                        u32& origin);

// What a warp reads in the shared memory of another block; the same as SharedReader::read.
bool read_of_peer(Warp& w, int lane, u32 address, u32 bytes, bool plain, u32& origin);

// Race and definedness bookkeeping of what one instruction reads of shared memory. `read` does it
// for one lane's cells [address, address + bytes). It returns true when it meets an undefined value
// and sets `origin` to where that came from.
class SharedReader {
 public:
  explicit SharedReader(Warp& w)
      : w_(w), cells_(w.block->cells.data()), shift_(w.program->shared_shift), now_(w.stamp(0)) {}

  bool read(int lane, u32 address, u32 bytes, bool plain, u32& origin) {
    const u32 cell = 1u << shift_, me = now_ | u32(lane);
    if (__builtin_expect(w_.visits(), 0))
      return read_of_peer(w_, lane, address, bytes, plain, origin);
    bool undefined = false;
    for (u32 at = address; at - address < bytes; at += cell) {
      Cell& c = cells_[at >> shift_];
      const bool fine = !(c.pending | (c.writer_pc & UNDEFINED_BIT)) && after(c.writer, lane);
      if (__builtin_expect(!fine, 0))
        undefined |= report_shared_read(w_, lane, at, bytes, c, plain, origin);
      // Two readers of one warp and time stand for all of its lanes: whoever writes next differs
      // from one of them.
      if (!plain || !(((c.reader ^ me) | (c.reader2 ^ me)) & ~31u)) continue;
      if ((c.reader ^ me) & 1023) {
        c.reader2 = c.reader;
        c.reader2_pc = c.reader_pc;
      }
      c.reader = me;
      c.reader_pc = w_.pc;
    }
    return undefined;
  }

 private:
  // Whether the cell was written, and in order. Neighbours are mostly from one warp and time.
  bool after(u32 writer, int lane) {
    if ((writer & ~31u) == seen_) return true;
    if (!writer || writer == BY_PEER || !w_.ordered(writer, lane)) return false;
    if ((writer & 1023) >> 5 != w_.index) seen_ = writer & ~31u;
    return true;
  }

  Warp& w_;
  Cell* const cells_;
  const u32 shift_, now_;
  u32 seen_ = 1;  // the last writers from another warp that were in order; at first nobody's stamp
};

// `same` says that the write leaves every byte as it is.
void shared_write(Warp& w, int lane, u32 address, u32 bytes, bool same, bool atomic,
                  u32 undefined_origin);
bool global_read(Warp& w, int lane, Region& r, i64 index, u64 address, u32 bytes, bool plain);
void global_write(Warp& w, int lane, Region& r, i64 index, u64 address, u32 bytes, bool same,
                  bool atomic, bool plain);
// Keeps in mind what the lanes of `a`, all of which lie in `r`, read, for later writes of others.
void remember_reads(Warp& w, Region& r, const Access& a);

// Keeps, where that is asked for, what the lanes of `a` did to global memory.
void trace(Warp& w, const Access& a, Use use);

// A race of this access with that of thread `other_who` at `other_pc`.
void race(Warp& w, int lane, EventKind kind, u8 space, u64 address, u32 bytes, bool write,
          bool other_write, u32 other_pc, u32 other_who, const Dim& other_block, bool same);

// --- blocks of a cluster

// What an address in shared memory says of whose it is: 0 for the block's own, else rank + 1.
constexpr int RANK_SHIFT = 24;
constexpr u64 WITHIN_BLOCK = (u64{1} << RANK_SHIFT) - 1;

// While it lives, the warp's accesses to shared memory go to another block of its cluster.
class Visit {
 public:
  Visit(Warp& w, Block* to) : warp(w), back(w.block) { w.block = to; }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  ~Visit() { warp.block = back; }

 private:
  Warp& warp;
  Block* const back;
};

// The block that an address says, or null, with an event, where there is none or it has ended.
Block* block_of(Warp& w, int lane, u64 address);

// Splits an access to shared memory by whose it is, and calls `f` in the block of each part.
template <class F> void by_block(Warp& w, const Access& all, F f) {
  for (u32 left = all.mask; left;) {
    const int first = __builtin_ctz(left);
    const u64 owner = all.at[first] >> RANK_SHIFT;
    Access part = all;
    part.mask = 0;
    for (int l = 0; l < LANES; ++l) {
      if (left >> l & 1 && all.at[l] >> RANK_SHIFT == owner) part.mask |= 1u << l;
      part.at[l] = (part.mask >> l & 1 ? all.at[l] : all.at[first]) & WITHIN_BLOCK;
    }
    left &= ~part.mask;
    Block* const block = block_of(w, first, all.at[first]);
    if (!block) continue;
    const Visit visit(w, block);
    f(part);
  }
}

// --- the async proxy

// What one asynchronous instruction reads of shared memory, piece by piece: it checks that the
// data are there for the async proxy, and keeps what is read until somebody waits for it.
class AsyncReader {
 public:
  AsyncReader(Warp& w, int lane) : w_(w), lane_(lane) {}
  // 16 bytes; the address is in bounds and a multiple of 16.
  void read(u32 address);
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
// Nobody overwrote what these read; from now on they are reads of their thread.
void finish_async_reads(Warp& w, const AsyncReads& reads);

bool is_bulk_copy(const Ins& i);   // of any kind, to shared memory
bool is_async_copy(const Ins& i);  // cp.async

bool completes_at_mbarrier(const Ins& i);  // a bulk copy to shared memory, st.async

constexpr u32 DEFINED = ~0u;  // undefined_origin of a defined value
inline u32 undefined_origin(const Warp& w, i32 slot, int lane) {
  return w.tainted && w.undefined[slot] >> lane & 1 ? w.origin[slot] : DEFINED;
}

}  // namespace sim
