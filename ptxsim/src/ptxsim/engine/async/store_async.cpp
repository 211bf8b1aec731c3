// st.async, red.async: a store into the shared memory of a block of the cluster, or a reduction
// there, that completes at an mbarrier there. As with a bulk copy, what it writes is there at once
// but counts as under way until somebody has waited for the phase. PTX counts it among the accesses
// of threads, not of the async proxy.
#include <algorithm>

#include "../checks/shared_races.hpp"
#include "../checks/undefined.hpp"
#include "../memory/cost.hpp"
#include "../memory/reductions.hpp"
#include "../program/kinds.hpp"
#include "../program/operations.hpp"
#include "mbarrier.hpp"

namespace sim {
namespace {

// The barrier must lie in the block that is written to.
struct StoreOperands { i32 elements[4], base, base_bytes, barrier, barrier_offset; };

void write(Warp& w, const Ins& i, int lane, u32 to, const Reduction* reduction) {
  const u32 shift = w.program->shared_shift, bytes = u32(i.width) * i.vec;
  for (int v = 0; v < i.vec; ++v) {
    const i32 slot = i.element(v);
    const u32 at = to + u32(v) * i.width;
    const void* from = i.width == 8 ? static_cast<void*>(lanes<u64>(w, slot) + lane)
                                    : static_cast<void*>(lanes<u32>(w, slot) + lane);
    u8* const there = w.block->shared.data() + at;
    u32 origin = undefined_origin(w, slot, lane, i.width);
    if (reduction) {
      if (is_undefined(*w.block, at >> shift)) origin = w.pc;
      reduction->apply(there, static_cast<const u8*>(from));
    } else {
      std::memcpy(there, from, i.width);
    }
    shared_write(w, lane, at, i.width, false, reduction, origin);
  }
  for (u32 at = to; at < to + bytes; at += 1u << shift) {
    Cell& c = w.block->cells[at >> shift];
    c.pending = w.index * LANES + u32(lane) + 1;
    c.pending_pc = w.pc;
  }
}

MBarrier* barrier_there(Warp& w, int lane, u32 address) {
  if (block_of(w, lane, address) == w.block)
    return barrier_at(w, lane, address & u32(WITHIN_BLOCK));
  w.block->machine->report(event_at(w, BARRIER_UNINITIALISED, lane));
  return nullptr;
}

template <bool reduces> Flow store_async(Warp& w, const Ins& i) {
  const Reduction* const reduction = reduces ? &reduction_of(w) : nullptr;
  const auto o = operands<StoreOperands>(i);
  Access all;
  resolve_addresses(w, i, all);
  check_defined(w, o.barrier, UNDEFINED_ADDRESS, false);
  for (u64& at : all.at) at &= OFFSET_MASK;
  by_block(w, all, [&](Access& a) {
    drop_misaligned(w, a, SHARED, true);
    if (a.mask) settle_shared(w, a, true);
    count_shared(w, a);
    for (u32 rest = a.mask; rest; rest &= rest - 1) {
      const int l = __builtin_ctz(rest);
      const u32 to = u32(a.at[l]);
      MBarrier* const b = barrier_there(w, l, lanes<u32>(w, o.barrier)[l] + u32(o.barrier_offset));
      write(w, i, l, to, reduction);
      if (!b) continue;
      b->landing.push_back({.to = {to, a.bytes}});
      release_copy(w, *b);
      b->transactions -= a.bytes;
      complete_if_due(w, *b);
    }
  });
  w.release();
  return Flow::next;
}

bool is_sound(const Program&, const Ins& i) {
  const bool fits = i.width == i.dwidth && (i.vec == 1 || i.vec == 2 || i.vec == 4);
  return fits && i.width * i.vec <= 16 &&
         std::all_of(i.o, i.o + i.vec, [](i32 slot) { return slot >= 0; });
}

template <int bytes> bool is_one(const Program&, const Ins& i) {
  return i.width == bytes && i.vec == 1;
}

}  // namespace

bool completes_at_mbarrier(const Ins& i) {
  return i.run == store_async<false> || i.run == store_async<true> || is_bulk_copy(i) ||
         arrives_after_copies(i);
}

void add_store_async(Table& t) {
  add(t, "st.async", store_async<false>, ">vVVVani", is_sound);
  for (const Reduction& each : reductions()) {
    if (!is_for_shared(each)) continue;
    const bool wide = each.bytes == 8;
    add(t, "red.async." + std::string(each.name), store_async<true>, wide ? ">w---ani" : ">n---ani",
        wide ? is_one<8> : is_one<4>);
  }
}

}  // namespace sim
