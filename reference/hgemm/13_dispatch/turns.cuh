// The persistent product with consumers that take turns: each has a tile of C to itself.
#pragma once

#include "product.cuh"

// A tile of C is BM rows of A by 128 columns of B. While one consumer stores its tile, the other
// multiplies, so the tensor cores do not stand still at the end of a tile. But a tile of B serves
// one consumer, not two, and what moves is power.
template <int BM_, int STAGES_, int CLUSTER_>
struct TurnsShape {
  static constexpr int BM = BM_, CONSUMERS = 2, STAGES = STAGES_, CLUSTER = CLUSTER_;
  static constexpr int ROWS = 64, HALVES = 2, BN = ROWS * HALVES;
  static constexpr int THREADS = WARPGROUP * (CONSUMERS + 1);
  static constexpr int PIECE = 64;  // columns of the product that one store takes: 128 bytes
};

template <class S>
struct alignas(1024) TurnsStorage {
  Element a[S::STAGES][S::BM * BK], b[S::STAGES][S::BN * BK];
  Element out[S::CONSUMERS][S::ROWS * S::PIECE];  // a piece of the tile of C
  Barrier full[S::STAGES], empty[S::STAGES];
};

// A barrier for each consumer, beside those of warpgroup_sync.
constexpr int turn_of(int consumer) { return 3 + consumer; }

// sums = the product of all tiles along K, as in product.cuh, for 128 columns of B. other: the
// consumer whose turn comes next, or -1. It may begin when the last tile has arrived here: a
// parity tells a phase only from the ones before and after it.
template <class S>
__device__ void multiply_halves(TurnsStorage<S>& s, Place<S>& at,
                                float (&sums)[S::HALVES][S::BM / 2], int k, int other) {
  constexpr uint64_t HALF = S::ROWS * BK * sizeof(Element) / 16;
  const int lane = threadIdx.x % 32;
  int before = 0;
  for (int p = 0; p < k; p += BK, at.advance()) {
    barrier_wait(&s.full[at.stage], at.parity);
    if (other >= 0 && p + BK >= k) let_go_on(turn_of(other));
    const uint64_t a = tile_descriptor(s.a[at.stage]), b = tile_descriptor(s.b[at.stage]);
    wgmma_fence();
#pragma unroll
    for (int q = 0; q < BK / 16; ++q)
#pragma unroll
      for (int h = 0; h < S::HALVES; ++h)
        wgmma<S::BM>(sums[h], b + h * HALF + q * step_along_k, a + q * step_along_k, p + q > 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (p > 0) release<S>(s.empty, before, lane);
    before = at.stage;
  }
  wgmma_wait<0>();
  release<S>(s.empty, before, lane);
}

// Half of a tile of C by TMA, in pieces of 64 x 64, one after the other.
template <class S>
__device__ void store_pieces(Element* piece, const CUtensorMap* C, const float (&sums)[S::BM / 2],
                             int consumer, int i0, int j) {
  const int t = threadIdx.x % WARPGROUP, lane = t % 32, row = t / 32 * 16 + lane % 16;
#pragma unroll
  for (int p = 0; p < S::BM / S::PIECE; ++p) {
    if (t == 0) tma_store_wait<0>();  // the piece before has been read
    warpgroup_sync(consumer);
    put_piece(piece, sums + p * S::PIECE / 2, row, lane);
    tma_store_fence();
    warpgroup_sync(consumer);
    if (t == 0) {
      tma_store(C, i0 + p * S::PIECE, j, piece);
      tma_store_commit();
    }
  }
}

// Lines of C begin at multiples of 16 bytes.
template <class S>
__global__ void __launch_bounds__(S::THREADS, 1)
    hgemm_in_turns(const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B,
                   const __grid_constant__ CUtensorMap C, const Work w) {
  extern __shared__ __align__(1024) unsigned char memory[];
  TurnsStorage<S>& s = *reinterpret_cast<TurnsStorage<S>*>(memory);
  const int t = threadIdx.x, group = t / WARPGROUP;
  prepare<S>(s, &A, &B, &C, 4);  // a lane of every warp of one consumer

  if (group == 0) {
    keep_registers<40>();
    if (t == 0) {
      wait_for_launches_before();
      produce<S>(s, &A, &B, w);
    }
  } else {
    take_registers<232>();
    const int consumer = group - 1, other = 1 - consumer, steps = (w.k + BK - 1) / BK;
    const int stride = gridDim.x / S::CLUSTER, first = blockIdx.x / S::CLUSTER;
    const int turns = (w.tiles_m * w.tiles_n - first + stride - 1) / stride;
    Place<S> at;
    int turn = 0;
    each_tile<S>(w, [&](int i0, int j) {
      const int mine = turn++;
      if (mine % S::CONSUMERS != consumer) return at.skip(steps);
      if (mine > 0) wait_until_let(turn_of(consumer));
      float sums[S::HALVES][S::BM / 2];
      multiply_halves(s, at, sums, w.k, turn < turns ? other : -1);
#pragma unroll
      for (int h = 0; h < S::HALVES; ++h)
        store_pieces<S>(s.out[consumer], &C, sums[h], consumer, i0, j + h * S::ROWS);
    });
    let_next_launch_begin();
    if (t % WARPGROUP == 0) tma_store_wait<0>();
  }
  if constexpr (S::CLUSTER > 1) cluster_sync();
}
