// What each kernel should take, in clocks, and with which clusters. The figures are fitted to
// 140 shapes on an H100 (docs/measurements/2026-11-26-h100-hgemm-narrow.txt).
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
constexpr Cluster CLUSTERS[] = {{1, 1}, {1, 2}, {2, 1}, {1, 4}, {4, 1},
                                {2, 4}, {4, 2}, {1, 8}, {8, 1}};

// Of a launch, of a launch on all multiprocessors besides, and of clusters.
constexpr int LAUNCH_CLOCKS = 3450, FULL_CLOCKS = 200, CLUSTER_CLOCKS = 50;

// Of a tile besides its steps along K: to come to it and to store it, at once or piece by piece.
template <class S>
double tile_clocks() {
  const bool at_once = S::OUT * S::PIECE == S::BM;
  return 500 + (at_once ? 0.11 : 0.153) * S::BM * S::BN;
}

// To exchange the sums of parts, and to add them.
template <class S>
double parts_clocks(const Cluster& c) {
  return c.parts > 1 ? 1.18 * S::BM * S::BN / c.parts : 0;
}

// The L2 has more to do where lines lie across its own, and across its sectors.
inline double across(int k) { return (k % BK ? 1.1 : 1.0) * (k % 16 ? 1.4 : 1.0); }

// A step of 64 along K: the tensor cores, what all blocks together wait for the L2 and, as long as
// nothing has been read, for the memory, and what a step takes at least. They overlap in part. With
// many waves clusters wait for each other.
template <class S>
double step_clocks(const Work& w, int k, int blocks, bool one_wave) {
  constexpr double LEAST = 245, LINE = BK * sizeof(Element), MEMORY_RATE = 2620;
  const Cluster& c = w.cluster;
  const double l2_rate = c.team() == 1 ? 6890 : c.team() == 2 ? 6310 : 7080;  // bytes in a clock
  const double lines = double(std::min(w.m, S::BM)) / c.n + double(std::min(w.n, S::BN)) / c.m;
  const double tensor_cores = S::BM * S::BN / 32;
  const double l2 = lines * LINE * blocks * across(k) / l2_rate;
  const double memory = one_wave ? (w.m + w.n) * LINE * c.parts * across(k) / MEMORY_RATE : 0;
  const double drift = one_wave || c.team() <= 2 ? 1.0 : c.team() == 4 ? 1.05 : 1.1;
  return drift * std::sqrt(tensor_cores * tensor_cores + l2 * l2 + memory * memory + LEAST * LEAST);
}

// Parts need a wave with all tiles, and some steps each.
inline bool parts_fit(const Work& w) {
  const int parts = w.cluster.parts;
  return parts == 1 ||
         (waves(w) == 1 && w.all_steps >= 2 * parts && (parts - 1) * w.steps < w.all_steps);
}

template <class S>
double clocks(const Work& w, int k) {
  if (!parts_fit(w)) return HUGE_VAL;
  const int all = w.tiles_m * w.tiles_n, blocks = w.cluster.blocks(), times = waves(w);
  const int busy = std::min(all, clusters_at_once(w.cluster)) * blocks;
  const double full = double(busy) / multiprocessors() * FULL_CLOCKS;
  const double begin = LAUNCH_CLOCKS + full + (blocks > 1 ? CLUSTER_CLOCKS : 0);
  const double tile = w.steps * step_clocks<S>(w, k, busy, times == 1) + tile_clocks<S>();
  return begin + times * tile + parts_clocks<S>(w.cluster);
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
constexpr double TURNS_END_CLOCKS = 3700, TURNS_LEAST = 11500;  // to store a tile

inline Way way_in_turns(int m, int n, int k) {
  const Work w = work<Turns>(m, n, k, PAIR);
  const double steps = w.steps * step_clocks<Turns>(w, k, multiprocessors(), false);
  const double tiles = waves(w) * std::max(steps, TURNS_LEAST);
  const double clocks = LAUNCH_CLOCKS + FULL_CLOCKS + tiles + TURNS_END_CLOCKS;
  return {m % 8 ? HUGE_VAL : clocks, PAIR, false, launch_in_turns};  // C is stored by TMA
}

// The largest tile moves the least, which counts where clusters read lines from memory again.
template <class S>
double power(int k) {
  return S::HALVES == 1 || k > 8192 ? 1.0 : 1.1;
}

constexpr int SUMS_CLOCKS = 25000;  // to leave and to add sums

template <class S>
Way way_shared(int m, int n, int k) {
  const Work w = work<S>(m, n, k, PAIR);
  const Sharing shared = sharing(w);
  const int all = w.tiles_m * w.tiles_n, at_once = clusters_at_once(PAIR);
  const int whole = tiles(all - shared.tiles, at_once);
  const double steps = double(whole) * w.steps + shared.steps;
  // All clusters are at one of two places along K, and lines across those of the L2 cost little.
  const double each = step_clocks<S>(w, w.steps * BK, multiprocessors(), false) * power<S>(k);
  const double sums = shared.tiles ? SUMS_CLOCKS : 0;
  const double stores = (all / at_once + 1) * tile_clocks<S>();
  const double clocks = LAUNCH_CLOCKS + FULL_CLOCKS + steps * each + stores + sums;
  return {m % 8 || all < at_once ? HUGE_VAL : clocks, PAIR, false, launch_shared<S>};
}
