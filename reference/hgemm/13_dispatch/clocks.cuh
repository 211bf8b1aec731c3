// What each kernel should take, in clocks. The figures put the fastest of 22 shapes on an H100
// first (docs/measurements/2026-11-26-h100-hgemm-waves.txt); that of 128 x 128, never first there,
// is high.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "launches.cuh"

// Of a launch, of a tile besides its steps along K, of clusters where there is but one wave.
constexpr int LAUNCH_CLOCKS = 9000, CLUSTER_CLOCKS = 6000;
template <class S>
constexpr int TILE_CLOCKS = S::HALVES > 1 ? 9000 : 4500;

// A step of 64 along K: what the tensor cores need, or what all blocks together wait for the L2,
// which has more to do where lines lie across its own.
template <class S>
double step_clocks(int k, int blocks) {
  constexpr int SIZE = S::BM * S::BN;
  constexpr int CLOCKS = SIZE == 192 * 256   ? 1550
                         : SIZE == 256 * 128 ? 1040
                         : SIZE == 192 * 128 ? 785
                         : SIZE == 144 * 128 ? 630
                         : SIZE == 128 * 128 ? 850
                                             : 345;
  constexpr int BYTES = (S::BM / S::CLUSTER + S::BN) * BK * int(sizeof(Element));
  return std::max(double(CLOCKS),
                  std::min(1.0, double(blocks) / multiprocessors()) * BYTES / (k % BK ? 35 : 64));
}

// A large tile moves less, and what it spares of the power makes the clocks shorter. What
// sharing takes beyond this model is fitted: power, perhaps, as all multiprocessors work.
template <class S>
constexpr double CLOCK = S::BM * S::BN == 192 * 256 ? 0.97 : 1.0;
constexpr double SHARED_CLOCK = 1.1;

template <class S>
double clocks(int m, int n, int k) {
  if constexpr (S::CLUSTER > 1 && !std::is_same_v<S, Narrow> && S::HALVES == 1)
    if (without_clusters<S>(m, n, k)) return clocks<Alone<S>>(m, n, k);
  const Work w = work<S>(m, n, k, 1);
  const int all = w.tiles_m * w.tiles_n, times = waves<S>(all);
  const double begin = LAUNCH_CLOCKS + (S::CLUSTER > 1 && times == 1 ? CLUSTER_CLOCKS : 0);
  return CLOCK<S> *
         (begin + times * (w.steps * step_clocks<S>(k, all * S::CLUSTER) + TILE_CLOCKS<S>));
}

// In turns only the end of the last tile counts.
constexpr int TURNS_STEP_CLOCKS = 845, TURNS_TILE_CLOCKS = 150, TURNS_END_CLOCKS = 4500;

inline double clocks_in_turns(int m, int n, int k) {
  if (m % 8) return HUGE_VAL;  // C cannot be stored by TMA
  const Work w = work<Turns>(m, n, k, 1);
  const double tile = double(w.steps) * TURNS_STEP_CLOCKS + TURNS_TILE_CLOCKS;
  return LAUNCH_CLOCKS + waves<Turns>(w.tiles_m * w.tiles_n) * tile + TURNS_END_CLOCKS;
}

inline double clocks_wide(int m, int n, int k) { return m % 8 ? HUGE_VAL : clocks<Wide>(m, n, k); }

// To leave a tile's sums, or to add them.
template <class S>
constexpr int SUMS_CLOCKS = 1700 + S::BM * S::BN / 15;

template <class S>
double clocks_shared(int m, int n, int k) {
  if (m % 8) return HUGE_VAL;
  const Work w = work<S>(m, n, k, 1);
  const Sharing shared = sharing<S>(w);
  if (shared.tiles == 0) return HUGE_VAL;
  const int whole = waves<S>(w.tiles_m * w.tiles_n - shared.tiles);
  const int ends = tiles(shared.steps, w.steps), added = tiles(w.steps - 1, shared.steps);
  const double steps = double(whole) * w.steps + shared.steps;
  return CLOCK<S> * SHARED_CLOCK *
         (LAUNCH_CLOCKS + steps * step_clocks<S>(k, multiprocessors()) +
          (whole + ends) * TILE_CLOCKS<S> + (1 + added) * SUMS_CLOCKS<S>);
}
