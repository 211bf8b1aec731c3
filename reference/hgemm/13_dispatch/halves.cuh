// Consumers with two halves of sums each: 128 columns of B by BM rows of A.
#pragma once

#include "product.cuh"

template <int BM_, int BN_, int STAGES_, int CLUSTER_, int OUT_>
struct HalvesShape {
  static constexpr int BM = BM_, BN = BN_, STAGES = STAGES_, CLUSTER = CLUSTER_, OUT = OUT_;
  static constexpr int CONSUMERS = 2, ROWS = 64, HALVES = 2, COLUMNS = ROWS * HALVES;
  static constexpr int THREADS = WARPGROUP * (CONSUMERS + 1);
  static constexpr int PIECE = 64;
};

// sums = the product of these steps along K, as in product.cuh, for 128 columns of B from `column`
// of the tile on. at_last: called when the last tile has arrived.
template <class S, class F>
__device__ void multiply_halves(Storage<S>& s, Place<S>& at, float (&sums)[S::HALVES][S::BM / 2],
                                int column, int steps, F at_last) {
  constexpr uint64_t HALF = S::ROWS * BK * sizeof(Element) / 16;
  const int lane = threadIdx.x % 32;
  int before = 0;
  for (int step = 0; step < steps; ++step, at.advance()) {
    barrier_wait(&s.full[at.stage], at.parity);
    if (step == steps - 1) at_last();
    const uint64_t a = tile_descriptor(s.a[at.stage]);
    const uint64_t b = tile_descriptor(s.b[at.stage] + column * BK);
    wgmma_fence();
#pragma unroll
    for (int q = 0; q < BK / 16; ++q)
#pragma unroll
      for (int h = 0; h < S::HALVES; ++h)
        wgmma<S::BM>(sums[h], b + h * HALF + q * step_along_k, a + q * step_along_k, step + q > 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (step > 0) release<S>(s.empty, before, lane);
    before = at.stage;
  }
  wgmma_wait<0>();
  release<S>(s.empty, before, lane);
}
