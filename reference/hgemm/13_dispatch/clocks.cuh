// What each kernel should take, in clocks, and with which clusters. The figures are fitted to 65
// shapes on an H100 (docs/measurements/2026-11-26-h100-hgemm-clusters.txt).
#pragma once

#include <algorithm>
#include <cmath>

#include "launches.cuh"

// A kernel, how it is launched, and what it should take.
struct Way {
  double clocks = HUGE_VAL;
  Cluster cluster = {1, 1};
  bool turned = false;
  void (*launch)(const Element*, const Element*, Element*, int, int, int, const Cluster&,
                 bool) = nullptr;

  bool operator<(const Way& other) const { return clocks < other.clocks; }
};

constexpr Cluster PAIR = {1, 2};
constexpr Cluster CLUSTERS[] = {{1, 1}, {1, 2}, {2, 1}, {2, 4}, {4, 2},
                                {1, 4}, {4, 1}, {1, 8}, {8, 1}, {2, 2}};

// Of a launch, of clusters, of a tile besides its steps along K.
constexpr int LAUNCH_CLOCKS = 950, CLUSTER_CLOCKS = 1350, TILE_CLOCKS = 3700;

// The L2 has more to do where lines lie across its own.
inline double across(int k) { return k % BK ? 1.6 : 1.0; }

// A step of 64 along K: what the tensor cores need, or what all blocks together wait for the L2, or
// what a step takes at least.
inline double step_clocks(const Cluster& c, int bm, int bn, int k, int blocks, bool one_wave) {
  constexpr int LEAST = 300;
  const double tensor_cores = bm * bn / 32 * 1.31;
  const double bytes = (double(bm) / c.n + double(bn) / c.m) * BK * sizeof(Element) * blocks;
  const double l2 = c.blocks() > 1 ? 4900 : one_wave ? 6150 : 4250;  // bytes in a clock
  return std::max({tensor_cores, bytes * across(k) / l2, double(LEAST)});
}

template <class S>
double clocks(const Work& w, int k) {
  const int all = w.tiles_m * w.tiles_n, blocks = w.cluster.blocks();
  const int busy = std::min(all, clusters_at_once(w.cluster)) * blocks;
  const int times = waves(w), parts = w.cluster.parts;
  if (parts > 1 && (times > 1 || w.all_steps < 2 * parts || (parts - 1) * w.steps >= w.all_steps))
    return HUGE_VAL;
  const double step = step_clocks(w.cluster, S::BM, S::BN, k, busy, times == 1);
  const double begin = LAUNCH_CLOCKS + (blocks > 1 ? CLUSTER_CLOCKS : 0);
  return begin + times * (w.steps * step + TILE_CLOCKS);
}

// Whole groups of eight lines go to each block: so the swizzle asks.
template <class S>
bool fits(const Cluster& c) {
  return S::BM % (8 * c.n) == 0 && S::BN % (8 * c.m) == 0;
}

template <class S>
Way way(int m, int n, int k) {
  Way best;
  for (const Cluster& c : CLUSTERS)
    for (int parts = 1; fits<S>(c) && parts * c.team() <= MOST_PARTS; parts *= 2)
      for (const bool turned : {false, true}) {
        const Cluster all = {c.m, c.n, parts};
        const Work w = work<S>(m, n, k, all, HGEMM_BAND, turned);
        best = std::min(best, Way{clocks<S>(w, k), all, turned, launch<S>});
      }
  return best;
}

// In turns only the end of the last tile counts.
constexpr int TURNS_STEP_CLOCKS = 1270, TURNS_TILE_CLOCKS = 150, TURNS_END_CLOCKS = 3700;
constexpr double TURNS_LEAST = 5000;  // to store a tile

inline Way way_in_turns(int m, int n, int k) {
  const Work w = work<Turns>(m, n, k, PAIR);
  const double steps = double(w.steps) * TURNS_STEP_CLOCKS + TURNS_TILE_CLOCKS;
  const double tile = std::max(steps, TURNS_LEAST);
  const double clocks = LAUNCH_CLOCKS + CLUSTER_CLOCKS + waves(w) * tile + TURNS_END_CLOCKS;
  return {m % 8 ? HUGE_VAL : clocks, PAIR, false, launch_in_turns};  // C is stored by TMA
}

// The largest tile moves the least, which counts where clusters read lines from memory again.
template <class S>
double power(int k) {
  return S::HALVES == 1 ? 1.0 : k > 8192 ? 0.97 : 1.05;
}

constexpr int SUMS_CLOCKS = 15000;  // to leave and to add sums

template <class S>
Way way_shared(int m, int n, int k) {
  const Work w = work<S>(m, n, k, PAIR);
  const Sharing shared = sharing(w);
  const int all = w.tiles_m * w.tiles_n, at_once = clusters_at_once(PAIR);
  const int whole = tiles(all - shared.tiles, at_once);
  const double steps = double(whole) * w.steps + shared.steps;
  const double each = step_clocks(PAIR, S::BM, S::BN, k, multiprocessors(), false) * power<S>(k);
  const double sums = shared.tiles ? SUMS_CLOCKS : 0;
  const double clocks = LAUNCH_CLOCKS + steps * each + (all / at_once + 1) * TILE_CLOCKS + sums;
  return {m % 8 ? HUGE_VAL : clocks, PAIR, false, launch_shared<S>};
}
