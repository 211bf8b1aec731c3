// What each kernel should take, in clocks, and with which clusters. The figures are fitted to
// 1399 shapes on an H100 (docs/measurements/2026-11-28-h100-hgemm-turns.txt). The program that
// fitted them was not kept: the fit cannot be repeated.
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

// A launch takes this, and each block of a cluster besides the first.
constexpr int LAUNCH_CLOCKS = 2940, CLUSTER_CLOCKS = 11;

// Steps along K that pass before the first tile is there.
constexpr double FILL_STEPS = 1.58;

// How much longer it takes to store C where TMA's pieces begin or end within a sector of 32 bytes:
// as if each had CUT elements more.
template <class S>
double stored_share(const Work& w) {
  constexpr double CUT = 23.4;
  const int line = w.turned ? w.n : w.m, piece = w.turned ? S::ROWS : S::PIECE;
  return line % 16 || piece % 16 ? 1 + CUT / piece : 1.0;
}

// Of a tile besides its steps along K: to come to it and to store it, at once or piece by piece.
template <class S>
double tile_clocks(const Work& w) {
  const bool at_once = S::OUT * S::PIECE == S::BM;
  return 654 + (at_once ? 0.0472 : 0.0632) * S::BM * S::BN * stored_share<S>(w);
}

// To exchange the sums of parts, and to add them.
template <class S>
double parts_clocks(const Cluster& c) {
  return c.parts > 1 ? 0.568 * S::BM * S::BN / c.parts : 0;
}

// Blocks that run at once.
inline int busy_blocks(const Work& w) {
  return std::min(w.tiles_m * w.tiles_n, clusters_at_once(w.cluster)) * w.cluster.blocks();
}

// A step of 64 along K: the tensor cores, what all blocks together wait for the L2, for lines that
// it does not have yet, and what a step takes at least. They overlap in part. With many waves
// clusters wait for each other. The L2 has more to do where lines lie across its sectors.
template <class S>
double step_clocks(const Work& w, int k) {
  constexpr double LEAST = 187, LINE = BK * sizeof(Element), NEW_RATE = 3500;  // bytes in a clock
  constexpr double L2_RATES[] = {6230, 6330, 8500, 8700};  // for teams of 1, 2, 4 and 8
  constexpr double DRIFTS[] = {1.0, 1.0, 1.092, 1.121};
  const Cluster& c = w.cluster;
  const int team = (c.team() > 1) + (c.team() > 2) + (c.team() > 4), times = waves(w);
  const double across = k % 16 ? 1.381 : 1.0;
  const double lines = double(std::min(w.m, S::BM)) / c.n + double(std::min(w.n, S::BN)) / c.m;
  const double tensor_cores = S::BM * S::BN / 32;
  const double l2 = lines * LINE * busy_blocks(w) * across / L2_RATES[team];
  const double first = double(w.m + w.n) * c.parts * LINE * across / NEW_RATE / times;
  const double drift = times > 1 ? DRIFTS[team] : 1.0;
  return drift * std::sqrt(tensor_cores * tensor_cores + l2 * l2 + first * first + LEAST * LEAST);
}

// Where A, B and C are more than the L2 keeps, the memory moves all of them meanwhile: the longer
// of both times counts, and a little of the shorter.
template <class S>
double with_memory(double clocks, const Work& w, int k) {
  constexpr double L2_KEEPS = 41e6, READ_RATE = 1512, WRITE_RATE = 1413;  // bytes; in a clock
  const double read = (double(w.m) + w.n) * k * sizeof(Element);
  const double written = double(w.m) * w.n * sizeof(Element);
  const double rated = read / READ_RATE + written * stored_share<S>(w) / WRITE_RATE;
  const double memory = read + written > L2_KEEPS ? rated : 0;
  return std::sqrt(std::hypot(clocks * clocks, memory * memory));
}

// Parts need a wave with all tiles, and some steps each.
inline bool parts_fit(const Work& w) {
  const int parts = w.cluster.parts;
  return parts == 1 ||
         (waves(w) == 1 && w.all_steps >= 2 * parts && (parts - 1) * w.steps < w.all_steps);
}

// All tiles. In turns one consumer stores while the other multiplies: a store counts only where it
// takes longer than the other's steps, and after the last tile.
template <class S>
double tiles_clocks(const Work& w, double step) {
  const double steps = w.steps * step;
  if (!S::TURNS) return waves(w) * (steps + tile_clocks<S>(w)) + parts_clocks<S>(w.cluster);
  const double stored = S::BM * S::BN * stored_share<S>(w);
  const double each = std::max(steps, (steps + 3000 + 0.177 * stored) / 2);
  return steps + (waves(w) - 1) * each + 1205 + 0.0693 * stored;
}

template <class S>
double clocks(const Work& w, int k) {
  const double step = step_clocks<S>(w, k);
  const double ends = LAUNCH_CLOCKS + (w.cluster.blocks() - 1) * CLUSTER_CLOCKS + FILL_STEPS * step;
  return with_memory<S>(ends + tiles_clocks<S>(w, step), w, k);
}

// Whole groups of eight lines go to each block: so the swizzle asks. In turns there are no parts.
template <class S>
bool fits(const Cluster& c) {
  return S::BM % (8 * c.n) == 0 && S::BN % (8 * c.m) == 0 && c.blocks() <= MOST_PARTS &&
         !(S::TURNS && c.parts > 1);
}

template <class S>
Way way(int m, int n, int k) {
  Way best;
  for (const Cluster& c : CLUSTERS)
    for (const int parts : {1, 2, 4, 8})
      for (const bool turned : {false, true}) {
        const Cluster all = {c.m, c.n, parts};
        if (!fits<S>(all)) continue;
        const Work w = work<S>(m, n, k, all, HGEMM_BAND, turned);
        if (parts_fit(w)) best = std::min(best, Way{clocks<S>(w, k), all, turned, launch<S>});
      }
  return best;
}

constexpr int SUMS_CLOCKS = 28100;  // to leave and to add sums
// What the largest tile takes besides: it has room for half of its C at a time, and three stages,
// so that it waits longer for lines across sectors (2026-11-28-h100-hgemm-shared.txt).
constexpr double WIDE_CLOCKS = 5500, WIDE_ACROSS = 1.03;

// For tiles in several waves, whose last ones are shared if they do not fill one.
template <class S>
Way way_shared(int m, int n, int k) {
  Way best = {HUGE_VAL, PAIR, false, launch_shared<S>};
  for (const bool turned : {false, true}) {
    const Work w = work<S>(m, n, k, PAIR, HGEMM_BAND, turned);
    const Sharing shared = sharing(w);
    const int all = w.tiles_m * w.tiles_n, at_once = clusters_at_once(PAIR);
    const int whole = tiles(all - shared.tiles, at_once);
    const double steps = double(whole) * w.steps + shared.steps;
    const bool wide = S::HALVES > 1;
    // All clusters are at one of two places along K, and lines across sectors cost little.
    const double each = step_clocks<S>(w, w.steps * BK) * (wide && k % 16 ? WIDE_ACROSS : 1);
    const double sums = shared.tiles ? SUMS_CLOCKS : 0;
    const double stores = (all / at_once + 1) * (tile_clocks<S>(w) + (wide ? WIDE_CLOCKS : 0));
    const double clocks = with_memory<S>(LAUNCH_CLOCKS + steps * each + stores + sums, w, k);
    if (w.by_tma && all > at_once) best = std::min(best, {clocks, PAIR, turned, launch_shared<S>});
  }
  return best;
}
