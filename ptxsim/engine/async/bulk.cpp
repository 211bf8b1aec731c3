// cp.async.bulk.
#include <algorithm>

#include "../limits.hpp"
#include "../checks/async_proxy.hpp"
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

// The base is of shared memory, which is written; the barrier lies in the same block.
Flow copy_in(Warp& w, const Ins& i) {
  const auto o = operands<BulkOperands>(i);
  Access target;
  resolve_addresses(w, i, target);
  for (u32 rest = w.exec; rest; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    const u64 to = generic_to_shared(target.at[l]);
    const u64 from = lanes<u64>(w, o.source)[l] + i64(o.source_offset);
    const u32 bytes = lanes<u32>(w, o.bytes)[l];
    if (!whole_pieces(w, l, from, to, bytes) || bytes > MAX_SHARED_BYTES) continue;
    Tile tile(bytes);
    if (!fetch(w, l, from, bytes, tile.data.data()))
      std::fill(tile.undefined.begin(), tile.undefined.end(), 1);
    count_global_side(w, bytes, sectors(from, bytes));
    const u64 barrier = lanes<u32>(w, o.barrier)[l] + u32(o.barrier_offset);
    deliver_to(w, l, tile, to, barrier, o.ranks < 0 ? nullptr : lanes<u32>(w, o.ranks) + l);
  }
  w.tick();
  return Flow::next;
}

// From the block's own shared memory to that of another: source is a shared address.
Flow copy_across(Warp& w, const Ins& i) {
  const auto o = operands<BulkOperands>(i);
  Access target;
  resolve_addresses(w, i, target);
  for (u32 rest = w.exec; rest; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    const u64 to = generic_to_shared(target.at[l]);
    const u64 from = generic_to_shared(lanes<u64>(w, o.source)[l] + i64(o.source_offset));
    const u32 bytes = lanes<u32>(w, o.bytes)[l];
    if (!whole_pieces(w, l, 0, from | to, bytes)) continue;
    if (!in_shared(w, l, u32(from & WITHIN_BLOCK), bytes, false)) continue;
    Tile tile(bytes);
    take(w, l, tile, u32(from & WITHIN_BLOCK));
    deliver_to(w, l, tile, to, lanes<u32>(w, o.barrier)[l] + u32(o.barrier_offset), nullptr);
  }
  w.tick();
  return Flow::next;
}

// The base is of shared memory, which is read; source is where the bytes go in global memory.
Flow copy_out(Warp& w, const Ins& i) {
  const auto o = operands<BulkOperands>(i);
  Access from;
  resolve_addresses(w, i, from);
  for (u32 rest = w.exec; rest; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    const u64 place = generic_to_shared(from.at[l]);
    const u64 to = lanes<u64>(w, o.source)[l] + i64(o.source_offset);
    const u32 bytes = lanes<u32>(w, o.bytes)[l];
    if (!whole_pieces(w, l, to, place, bytes) || !in_shared(w, l, u32(place), bytes, false))
      continue;
    Tile tile(bytes);
    take(w, l, tile, u32(place));
    put_back(w, l, to, bytes, tile.data.data());
    count_global_side(w, bytes, sectors(to, bytes));
  }
  return Flow::next;
}

// --- groups of copies to global memory

Flow commit(Warp& w, const Ins&) {
  for (u32 rest = w.exec; rest; rest &= rest - 1) w.bulk_group[__builtin_ctz(rest)]++;
  return Flow::next;
}

Flow wait_group(Warp& w, const Ins& i) {
  auto& reading = w.block->reading;
  const auto over = [&](const AsyncReads& reads) {
    const u32 thread = reads.thread & 1023, lane = thread % LANES;
    if (reads.wgmma || thread / LANES != w.index || !(w.exec >> lane & 1)) return false;
    if (i64(reads.group) >= i64(w.bulk_group[lane]) - i.groups()) return false;
    finish_async_reads(w, reads);
    return true;
  };
  reading.erase(std::remove_if(reading.begin(), reading.end(), over), reading.end());
  w.tick();
  return Flow::next;
}

}  // namespace

bool is_bulk_copy(const Ins& i) {
  return i.run == copy_in || i.run == copy_across || is_load_tile(i);
}

void add_bulk(Table& t) {
  t.push_back({"cp.async.bulk", copy_in, ">wnniaiN"});
  t.push_back({"cp.async.bulk.across", copy_across, ">wnniaiN"});
  t.push_back({"cp.async.bulk.out", copy_out, ">wn-ia"});
  t.push_back({"cp.async.bulk.commit_group", commit, ">"});
  t.push_back({"cp.async.bulk.wait_group", wait_group, ">",
               [](const Program&, const Ins& i) { return i.groups() >= 0 && i.groups() <= ALL; }});
}

}  // namespace sim
