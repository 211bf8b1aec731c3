// A kernel's tile, what it keeps in shared memory, and its work.
#pragma once

#include "cluster.cuh"

constexpr int WARPGROUP = 128, BK = 64;

// Columns of C^T that are stored at once: 64 if that divides the tile.
constexpr int piece(int bm) {
  for (const int width : {64, 48, 80, 112})
    if (bm % width == 0) return width;
  return bm;
}

// A tile of C is BM rows of A by BN columns of B, which is BN rows of the product C^T = B^T * A^T:
// each consumer, a warpgroup, has HALVES times ROWS of them. OUT: pieces of C that a consumer has
// room for, or 0 for all.
template <int BM_, int CONSUMERS_, int STAGES_, int HALVES_ = 1, int OUT_ = 0>
struct Shape {
  static constexpr int BM = BM_, CONSUMERS = CONSUMERS_, STAGES = STAGES_;
  static constexpr int ROWS = 64, HALVES = HALVES_, COLUMNS = ROWS * HALVES;
  static constexpr int BN = COLUMNS * CONSUMERS, THREADS = WARPGROUP * (CONSUMERS + 1);
  static constexpr int PIECE = piece(BM), OUT = OUT_ ? OUT_ : BM / PIECE;
  // Of a multiprocessor's registers, the producer's and a consumer's.
  static constexpr int FEW = CONSUMERS > 2 ? 32 : 40, MANY = CONSUMERS > 2 ? 160 : 232;
};

template <class S>  // what a thread of a consumer has of the product
using Sums = float[S::HALVES][S::BM / 2];

template <class S>
struct alignas(1024) Storage {
  Element a[S::STAGES][S::BM * BK], b[S::STAGES][S::BN * BK];
  Element out[S::CONSUMERS][S::OUT][S::ROWS * S::PIECE];
  Barrier full[S::STAGES], empty[S::STAGES];
};

struct Work {
  int m, n, steps;  // steps: of BK along K
  Cluster cluster;
  int tiles_m, tiles_n;  // of whole clusters
  int group;             // lines of tiles along N that are worked on together, for the L2's sake
  bool by_tma;           // whether C can be stored by TMA
  bool early;            // whether the next launch may begin at once
};
