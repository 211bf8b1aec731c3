// cp.async: the copy is read when issued and lands when its thread waits for it, the latest
// moment the GPU may choose, so that a missing wait shows.
#include <algorithm>

#include "../checks/global_races.hpp"
#include "../checks/shared_races.hpp"
#include "../checks/undefined.hpp"
#include "../memory/cost.hpp"
#include "../program/kinds.hpp"
#include "../program/operations.hpp"
#include "cp_async.hpp"

namespace sim {
namespace {

// The target is the address of the access. size: of the source, -1: all; ignored: a predicate, set
// where the source is not read, -1: none.
struct CopyOperands { i32 source, size, ignored, source_offset; };

Flow copy(Warp& w, const Ins& i) {
  const auto o = operands<CopyOperands>(i);
  Access target;
  resolve_addresses(w, i, target);
  drop_misaligned(w, target, SHARED, true);
  if (target.mask) settle_shared(w, target, true);
  count_shared(w, target);

  Access source;
  source.bytes = i.width;
  source.mask = target.mask;
  check_defined(w, o.source, UNDEFINED_ADDRESS, false);
  const u64* from = lanes<u64>(w, o.source);
  u32 sizes[LANES];
  for (int l = 0; l < LANES; ++l) {
    sizes[l] = o.size < 0 ? i.width : std::min<u32>(i.width, lanes<u32>(w, o.size)[l]);
    if (o.ignored >= 0 && w.preds[o.ignored] >> l & 1) sizes[l] = 0;
    if (!sizes[l]) source.mask &= ~(1u << l);  // zero-filled: the source is not touched
  }
  const u32 reading = source.mask;
  if (reading != target.mask) count_zeros(w);
  if (reading) {
    for (int l = 0; l < LANES; ++l)
      source.at[l] = from[reading >> l & 1 ? l : __builtin_ctz(reading)] + i64(o.source_offset);
    drop_misaligned(w, source, GLOBAL, false);
    count_source(w, source);
  }

  AsyncCopy c;
  c.pc = w.pc;
  c.mask = target.mask & ~(reading & ~source.mask);
  c.bytes = i.width;
  for (int l = 0; l < LANES; ++l) {
    if (!(c.mask >> l & 1)) continue;
    std::memset(c.data[l], 0, sizeof c.data[l]);
    c.target[l] = u32(target.at[l]);
    c.group[l] = w.async_group[l];
    c.source[l] = {};
    bool undefined = false;
    if (source.mask >> l & 1) {
      i64 index = -1;
      Region* r = w.block->machine->find(source.at[l], index);
      if (!r || !within(source.at[l], sizes[l], r->base, r->size)) {
        Event e = event_at(w, OUT_OF_BOUNDS, l);
        e.address = source.at[l];
        e.size = sizes[l];
        e.space = GLOBAL;
        e.region = r ? index : -1;
        e.region_start = r ? r->base : 0;
        e.region_size = r ? r->size : 0;
        w.block->machine->report(e);
        c.mask &= ~(1u << l);
        source.mask &= ~(1u << l);
        continue;
      }
      std::memcpy(c.data[l], r->at(source.at[l]), sizes[l]);
      c.source[l] = {source.at[l], sizes[l]};
      r->copied = true;
      if (!r->all_defined || !r->stamps.empty())
        undefined = global_read(w, l, *r, index, source.at[l], sizes[l], true);
      Access read = source;
      read.mask = 1u << l;
      read.bytes = sizes[l];
      remember_reads(w, r, read);
      trace(w, read, READ);
    }
    shared_write(w, l, c.target[l], i.width, false, false, undefined ? w.pc : DEFINED);
    const u32 cell = 1u << w.program->shared_shift;
    for (u32 at = c.target[l]; at - c.target[l] < i.width; at += cell) {
      Cell& shadow = w.block->cells[at >> w.program->shared_shift];
      shadow.pending = w.index * LANES + l + 1;
      shadow.pending_pc = w.pc;
    }
  }
  if (c.mask) w.async.push_back(c);
  return Flow::next;
}

void land(Warp& w, AsyncCopy& c, u32 ready) {
  const u32 cell = 1u << w.program->shared_shift;
  for (u32 rest = ready; rest; rest &= rest - 1) {
    int l = __builtin_ctz(rest);
    std::memcpy(w.block->shared.data() + c.target[l], c.data[l], c.bytes);
    for (u32 at = c.target[l]; at - c.target[l] < c.bytes; at += cell) {
      Cell& shadow = w.block->cells[at >> w.program->shared_shift];
      shadow.pending = 0;
      shadow.writer.epoch = w.epoch(l);
    }
  }
  c.mask &= ~ready;
}

void forget_landed(Warp& w) {
  const auto landed = [](const AsyncCopy& c) { return !c.mask; };
  w.async.erase(std::remove_if(w.async.begin(), w.async.end(), landed), w.async.end());
}

// Completes, for the executing lanes, every group but the `keep` latest committed ones.
void complete(Warp& w, i64 keep, bool uncommitted) {
  for (AsyncCopy& c : w.async) {
    u32 ready = 0;
    for (u32 rest = c.mask & w.exec; rest; rest &= rest - 1) {
      int l = __builtin_ctz(rest);
      if (uncommitted || i64(c.group[l]) < i64(w.async_group[l]) - keep) ready |= 1u << l;
    }
    if (ready) land(w, c, ready);
  }
  forget_landed(w);
}

Flow commit_copies(Warp& w, const Ins&) {
  for (int l = 0; l < LANES; ++l) w.async_group[l] += w.exec >> l & 1;
  return Flow::next;
}
Flow wait_copies(Warp& w, const Ins& i) {
  complete(w, i.groups(), false);
  return Flow::next;
}
Flow wait_all(Warp& w, const Ins&) {
  complete(w, 0, true);
  return Flow::next;
}

}  // namespace

void land_at_mbarrier(Warp& w, int lane, MBarrier& b) {
  const u32 cell = 1u << w.program->shared_shift;
  for (AsyncCopy& c : w.async) {
    if (!(c.mask >> lane & 1)) continue;
    land(w, c, 1u << lane);
    for (u32 at = c.target[lane]; at - c.target[lane] < c.bytes; at += cell) {
      Cell& shadow = w.block->cells[at >> w.program->shared_shift];
      shadow.pending = w.index * LANES + u32(lane) + 1;
      shadow.pending_pc = w.pc;
    }
    b.landing.push_back({.to = {c.target[lane], c.bytes},
                         .from = c.source[lane],
                         .copy = {w.home->linear + 1, w.epoch(lane), c.pc}});
  }
  forget_landed(w);
}

bool is_async_copy(const Ins& i) { return i.run == copy; }

void add_async(Table& t) {
  add(t, "cp.async", copy, ">wNPia", [](const Program&, const Ins& i) {
    return i.vec == 1 && (i.width == 4 || i.width == 8 || i.width == 16);
  });
  add(t, "cp.async.commit_group", commit_copies, ">");
  add(t, "cp.async.wait_group", wait_copies, ">",
      [](const Program&, const Ins& i) { return i.groups() >= 0 && i.groups() <= ALL; });
  add(t, "cp.async.wait_all", wait_all, ">");
}

}  // namespace sim
