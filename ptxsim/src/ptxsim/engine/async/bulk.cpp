// cp.async.bulk.
#include <algorithm>

#include "../limits.hpp"
#include "../checks/async_proxy.hpp"
#include "../checks/copies_under_way.hpp"
#include "../memory/cluster_addresses.hpp"
#include "../program/kinds.hpp"
#include "../program/operations.hpp"
#include "bulk_copies.hpp"

namespace sim {
namespace {

// source, base: of what moves; barrier: of a copy to shared memory; ranks: of a multicast
struct BulkOperands {
  i32 source, bytes, barrier, source_offset, base, base_bytes, barrier_offset, ranks;
};

u64 generic_to_shared(u64 address) { return address & OFFSET_MASK; }

bool whole_pieces(Warp& w, int lane, u64 global, u64 shared, u32 bytes) {
  if (!((global | shared | bytes) & (PIECE - 1))) return true;
  const bool of_global = global & (PIECE - 1);
  report_misaligned(w, lane, of_global ? global : shared, PIECE, of_global ? GLOBAL : SHARED);
  return false;
}

// Calls `f(lane, shared address that the base names, source, bytes)`.
template <class F> void each_copy(Warp& w, const Ins& i, F f) {
  const auto o = operands<BulkOperands>(i);
  Access base;
  resolve_addresses(w, i, base);
  for (u32 rest = w.exec; rest; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    f(l, generic_to_shared(base.at[l]), lanes<u64>(w, o.source)[l] + i64(o.source_offset),
      lanes<u32>(w, o.bytes)[l]);
  }
}

u64 barrier_of(Warp& w, const Ins& i, int lane) {
  const auto o = operands<BulkOperands>(i);
  return lanes<u32>(w, o.barrier)[lane] + u32(o.barrier_offset);
}

// The base is written; the barrier lies in the same block.
Flow copy_in(Warp& w, const Ins& i) {
  const i32 ranks = operands<BulkOperands>(i).ranks;
  each_copy(w, i, [&](int l, u64 to, u64 from, u32 bytes) {
    if (!whole_pieces(w, l, from, to, bytes) || bytes > MAX_SHARED_BYTES) return;
    Tile tile(bytes);
    fetch(w, l, from, bytes, tile, 0);
    count_global_side(w, bytes, sectors(from, bytes));
    deliver_to(w, l, tile, to, barrier_of(w, i, l), ranks < 0 ? nullptr : lanes<u32>(w, ranks) + l);
  });
  w.release();
  return Flow::next;
}

// From the block's own shared memory to that of another: source is a shared address.
template <bool reduces> Flow copy_across(Warp& w, const Ins& i) {
  const Reduction* const reduction = reduces ? &reduction_of(w) : nullptr;
  each_copy(w, i, [&](int l, u64 to, u64 source, u32 bytes) {
    const u64 from = generic_to_shared(source);
    if (!whole_pieces(w, l, 0, from | to, bytes)) return;
    if (!in_shared(w, l, u32(from & WITHIN_BLOCK), bytes, false)) return;
    Tile tile(bytes);
    take(w, l, tile, u32(from & WITHIN_BLOCK), NO_GROUP);
    deliver_to(w, l, tile, to, barrier_of(w, i, l), nullptr, reduction);
  });
  w.release();
  return Flow::next;
}

// The base is read; source is where the bytes go in global memory.
template <bool reduces> Flow copy_out(Warp& w, const Ins& i) {
  const Reduction* const reduction = reduces ? &reduction_of(w) : nullptr;
  each_copy(w, i, [&](int l, u64 place, u64 to, u32 bytes) {
    if (!whole_pieces(w, l, to, place, bytes) || !in_shared(w, l, u32(place), bytes, false)) return;
    Tile tile(bytes);
    take(w, l, tile, u32(place), w.bulk_group[l]);
    put_back(w, l, to, bytes, tile.data.data(), reduction);
    count_global_side(w, bytes, sectors(to, bytes));
  });
  return Flow::next;
}

// --- groups of copies to global memory

Flow commit_bulk(Warp& w, const Ins&) {
  for (u32 rest = w.exec; rest; rest &= rest - 1) w.bulk_group[__builtin_ctz(rest)]++;
  return Flow::next;
}

// of_sources: until the copies have read them
template <bool of_sources> Flow wait_bulk(Warp& w, const Ins& i) {
  auto& reading = w.block->reading;
  const auto over = [&](const AsyncReads& reads) {
    const u32 lane = reads.issued.lane();
    if (reads.wgmma || reads.issued.warp() != w.index || !(w.exec >> lane & 1)) return false;
    if (i64(reads.group) >= i64(w.bulk_group[lane]) - i.groups()) return false;
    finish_async_reads(*w.block, reads, w.epoch(int(lane)));
    return true;
  };
  std::erase_if(reading, over);
  if (!of_sources) finish_stores(w, i.groups());
  return Flow::next;
}

}  // namespace

bool is_bulk_copy(const Ins& i) {
  return i.run == copy_in || i.run == copy_across<false> || i.run == copy_across<true> ||
         is_load_tile(i);
}

bool is_bulk_store(const Ins& i) {
  return i.run == copy_out<false> || i.run == copy_out<true> || is_store_tile(i);
}

void add_bulk(Table& t) {
  add(t, "cp.async.bulk", copy_in, ">wnniaiN");
  add(t, "cp.async.bulk.across", copy_across<false>, ">wnniaiN");
  add(t, "cp.async.bulk.out", copy_out<false>, ">wn-ia");
  for (const Reduction& each : reductions()) {
    const std::string name(each.name);
    add(t, "cp.reduce.async.bulk.out." + name, copy_out<true>, ">wn-ia");
    if (is_for_shared(each))
      add(t, "cp.reduce.async.bulk.across." + name, copy_across<true>, ">wnniai");
  }
  add(t, "cp.async.bulk.commit_group", commit_bulk, ">");
  const auto counts = [](const Program&, const Ins& i) {
    return i.groups() >= 0 && i.groups() <= ALL;
  };
  add(t, "cp.async.bulk.wait_group", wait_bulk<false>, ">", counts);
  add(t, "cp.async.bulk.wait_group.read", wait_bulk<true>, ">", counts);
}

}  // namespace sim
