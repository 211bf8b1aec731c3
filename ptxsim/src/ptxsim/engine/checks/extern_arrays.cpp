#include "extern_arrays.hpp"

#include <algorithm>

#include "peers.hpp"

namespace sim {
namespace {

constexpr u32 ALIGNMENT = 16;  // of an array behind another one

// Through which array, counted from 1; 0: unknown.
u8 name_of(Warp& w, u32 address, u32 bytes) {
  const u8 name = w.program->extern_arrays[w.pc];
  if (name) {
    u32& end = w.program->extern_ends[name - 1];
    end = std::max(end, address + bytes);
  }
  return name;
}

u8 bit(u8 name) { return u8(1u << (name - 1)); }

void report_overlap(Machine& m, u32 address, u32 bytes, ExternCell& c) {
  Event e{};
  e.kind = EXTERN_ARRAYS_MEET;
  e.count = 1;
  e.region = -1;
  e.space = SHARED;
  e.address = address;
  e.size = bytes;
  e.write = true;
  e.pc = c.writer.pc;
  e.block = block_at(m, c.writer.block - 1);
  e.thread = thread_at(m, c.writer.epoch.thread());
  e.other_pc = c.reader.pc;
  e.other_block = block_at(m, c.reader.block - 1);
  e.other_thread = thread_at(m, c.reader.epoch.thread());
  m.report(e);
  c.overwritten = 0;
  c.reader = {};
}

// own: it may count as a read through the array that the cell was written through.
void read(Warp& w, int lane, u32 address, u32 bytes, u8 name, bool own) {
  const u32 shift = w.program->shared_shift;
  for (u32 at = address; at - address < bytes; at += 1u << shift) {
    ExternCell& c = w.block->externs[at >> shift];
    if (!c.writer.block) continue;
    c.read_back |= own && name == c.written_as;
    const bool lost = c.overwritten & bit(name) && !c.reader.block;
    if (lost && in_order(w, lane, c.writer)) {
      c.reader = {w.home->linear + 1, w.epoch(lane), w.pc};
      c.read_as = name;
    }
    if (c.read_back && c.reader.block) report_overlap(*w.block->machine, at, 1u << shift, c);
  }
}

}  // namespace

void extern_read(Warp& w, int lane, u32 address, u32 bytes) {
  if (const u8 name = name_of(w, address, bytes)) read(w, lane, address, bytes, name, true);
}

void extern_write(Warp& w, int lane, u32 address, u32 bytes, bool same, bool atomic) {
  const u8 name = name_of(w, address, bytes);
  if (atomic && name) read(w, lane, address, bytes, name, false);
  const u32 shift = w.program->shared_shift;
  for (u32 at = address; at - address < bytes; at += 1u << shift) {
    ExternCell& c = w.block->externs[at >> shift];
    if (!name && !same) c = {};
    if (!name) continue;
    const u8 before = c.writer.block && c.written_as != name && !same ? bit(c.written_as) : 0;
    c.overwritten = u8((c.overwritten | before) & ~bit(name));
    if (same && c.writer.block) continue;
    c.writer = {w.home->linear + 1, w.epoch(lane), w.pc};
    c.reader = {};
    c.written_as = name;
    c.read_back = false;
  }
}

void suggest_offsets(Machine& m) {
  const u32 start = m.program->arrays.back().start;
  for (Event& e : m.events) {
    if (e.kind != EXTERN_ARRAYS_MEET) continue;
    const auto& names = m.program->extern_arrays;
    u32 offset = 0;
    for (u32 k = 0; k + 1 < std::max(names[e.pc], names[e.other_pc]); ++k) {
      const u32 end = m.program->extern_ends[k];
      offset += (std::max(end, start) - start + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    set_details(e, {offset});
  }
}

}  // namespace sim
