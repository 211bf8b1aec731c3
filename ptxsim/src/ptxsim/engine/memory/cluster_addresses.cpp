#include "cluster_addresses.hpp"

#include "../checks/peers.hpp"
#include "../program/operations.hpp"

namespace sim {
namespace {

struct MapOperands { i32 address, own, rank; };

u64 mapped(u64 address, u32 rank) {
  const u64 shared = (address & WITHIN_BLOCK) | (u64(rank & 0xff) + 1) << RANK_SHIFT;
  return shared | (address & ~OFFSET_MASK);
}

template <class T> Flow map_address(Warp& w, const Ins& i) {
  const auto o = operands<MapOperands>(i);
  T *d = lanes<T>(w, o.address), *a = lanes<T>(w, o.own);
  const u32* rank = lanes<u32>(w, o.rank);
  for (int l = 0; l < LANES; ++l)
    if (w.exec >> l & 1) d[l] = T(mapped(a[l], rank[l]));
  return Flow::next;
}

template <class T> Flow rank_of_address(Warp& w, const Ins& i) {
  u32* d = lanes<u32>(w, i.output());
  const T* a = lanes<T>(w, i.input(0));
  for (int l = 0; l < LANES; ++l) {
    if (!(w.exec >> l & 1)) continue;
    const u32 owner = u32((a[l] & OFFSET_MASK) >> RANK_SHIFT);
    d[l] = owner ? owner - 1 : w.home->rank;
  }
  return Flow::next;
}

}  // namespace

Block* block_of(Warp& w, int lane, u64 address) {
  const u64 owner = address >> RANK_SHIFT;
  Block* const home = w.home;
  if (!owner || owner == u64(home->rank) + 1) return home;
  const Cluster* cluster = home->cluster.get();
  Event e = event_at(w, OUT_OF_BOUNDS, lane);
  e.space = SHARED;
  e.address = address;
  if (cluster && owner <= cluster->blocks.size()) {
    Block* const block = cluster->blocks[owner - 1];
    if (block->live) {
      visit(w, lane, *block);
      return block;
    }
    e.kind = PEER_EXITED;
    e.other_block = block->id;
  }
  w.block->machine->report(e);
  return nullptr;
}

void add_cluster_addresses(Table& t) {
  add(t, "mapa.u32", map_address<u32>, "n>nn");
  add(t, "mapa.u64", map_address<u64>, "w>wn");
  add(t, "getctarank.u32", rank_of_address<u32>, "n>n");
  add(t, "getctarank.u64", rank_of_address<u64>, "n>w");
}

}  // namespace sim
