// Races for shared memory, and its undefined values.
#pragma once

#include "extern_arrays.hpp"

namespace sim {

// A race of this access with another one. first: nothing else has written there.
void race(Warp& w, int lane, EventKind kind, u32 address, u32 bytes, bool write,
          const Region::Stamp& other, bool other_write, bool first = false);

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
      : w_(w), cells_(w.block->cells.data()), shift_(w.program->shared_shift), now_(w.epoch(0)),
        externs_(!w.block->externs.empty()) {}

  bool read(int lane, u32 address, u32 bytes, bool plain, u32& origin) {
    const u32 cell = 1u << shift_;
    const Epoch me = now_.of_lane(u32(lane));
    if (__builtin_expect(externs_, 0)) extern_read(w_, lane, address, bytes);
    if (__builtin_expect(w_.visits(), 0))
      return read_of_peer(w_, lane, address, bytes, plain, origin);
    bool undefined = false;
    for (u32 at = address; at - address < bytes; at += cell) {
      Cell& c = cells_[at >> shift_];
      const bool fine = !(c.pending | (c.writer.pc & UNDEFINED_BIT)) && after(c.writer.epoch, lane);
      if (__builtin_expect(!fine, 0))
        undefined |= report_shared_read(w_, lane, at, bytes, c, plain, origin);
      // Two readers of one warp and time stand for all of its lanes: whoever writes next differs
      // from one of them.
      if (!plain || !((c.reader.epoch.step() ^ me.step()) | (c.reader2.epoch.step() ^ me.step())))
        continue;
      if (c.reader.epoch.thread() != me.thread()) c.reader2 = c.reader;
      c.reader = {me, w_.pc};
    }
    return undefined;
  }

 private:
  // Whether the cell was written, and in order. Neighbours are mostly from one warp and time.
  bool after(Epoch writer, int lane) {
    if (writer.step() == seen_) return true;
    if (!writer || writer == BY_PEER || !w_.ordered(writer, lane)) return false;
    if (writer.warp() != w_.index && !w_.some_released && !w_.some_lanes) seen_ = writer.step();
    return true;
  }

  Warp& w_;
  Cell* const cells_;
  const u32 shift_;
  const Epoch now_;
  const bool externs_;
  u32 seen_ = 1;  // step of the last writers from another warp that were in order; at first none
};

// Whether nobody has written the cell, or something undefined.
inline bool is_undefined(const Block& b, u32 cell) {
  return !b.cells[cell].writer.epoch || b.cells[cell].writer.pc & UNDEFINED_BIT;
}
// `same` says that the write leaves every byte as it is.
void shared_write(Warp& w, int lane, u32 address, u32 bytes, bool same, bool atomic,
                  u32 undefined_origin);

}  // namespace sim
