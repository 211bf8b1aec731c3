// The persistent product with consumers that take turns: each has a tile of C to itself.
#pragma once

#include "product.cuh"

// A tile of C is BM rows of A by 128 columns of B. While one consumer stores its tile, the other
// multiplies, so the tensor cores do not stand still at the end of a tile. But a tile of B serves
// one consumer, not two, and what moves is power.
template <int BM>
using InTurns = Shape<BM, 2, 1, 2, true>;

// A barrier for each consumer, beside those of warpgroup_sync.
constexpr int turn_of(int consumer) { return 3 + consumer; }

template <class S>
__global__ void __launch_bounds__(S::THREADS, 1)
    hgemm_in_turns(const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B,
                   const __grid_constant__ CUtensorMap C_map, Element* C, const Work w) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Storage<S>& s = *reinterpret_cast<Storage<S>*>(memory);
  const int t = threadIdx.x, group = t / WARPGROUP;
  prepare<S>(s, &A, &B, &C_map, w.cluster, 4);  // a lane of every warp of one consumer
  if (w.early) let_next_launch_begin();

  if (group == 0) {
    keep_registers<S::FEW>();
    if (t / 32 == 0 && elected()) produce(s, &A, &B, w.cluster, Tiles<S>{w}, [] {});
  } else {
    take_registers<S::MANY>();
    const int consumer = group - 1, other = 1 - consumer;
    const int free = filler(w.cluster), stride = clusters(w.cluster);
    const int turns = (w.tiles_m * w.tiles_n - cluster_index(w.cluster) + stride - 1) / stride;
    Place<S> at;
    int turn = 0;
    Tiles<S>{w}.each([&](const Part& part) {
      const int mine = turn++;
      if (mine % S::CONSUMERS != consumer) return at.skip(part.steps);
      if (mine > 0) wait_until_let(turn_of(consumer));
      Sums<S> sums;
      // The other may begin when the last tile has arrived here: a parity tells a phase only from
      // the ones before and after it.
      multiply(s, at, sums, 0, part.steps, free, [&] {
        if (turn < turns) let_go_on(turn_of(other));
      });
#pragma unroll
      for (int h = 0; h < S::HALVES; ++h)
        store(s, &C_map, sums[h], w, consumer, part.i0, part.j0 + h * S::ROWS,
              w.by_tma ? nullptr : C);
    });
    let_next_launch_begin();
    if (t % WARPGROUP == 0) tma_store_wait<0>();
  }
}
