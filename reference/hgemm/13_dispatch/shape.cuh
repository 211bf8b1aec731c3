// A kernel's tile, what it keeps in shared memory, and its work.
#pragma once

#include "cluster.cuh"

constexpr int WARPGROUP = 128, BK = 64;

// Of the 227 KB of shared memory that a block can have, 1 is for barriers.
constexpr int ROOM_BYTES = 226 * 1024;

// Columns of C^T that are stored at once: 64 if that divides the tile.
constexpr int piece(int bm) {
  for (const int width : {64, 48, 80, 112, 88})
    if (bm % width == 0) return width;
  return bm;
}

// A tile of C is BM rows of A by BN columns of B, which is BN rows of the product C^T = B^T * A^T:
// each consumer, a warpgroup, has HALVES times ROWS of them, or all if they take turns. OUT: pieces
// of C that a consumer has room for, or 0 for all. What is left of shared memory is stages.
template <int BM_, int CONSUMERS_, int OUT_ = 0, int HALVES_ = 1, bool TURNS_ = false>
struct Shape {
  static constexpr bool TURNS = TURNS_;
  static constexpr int BM = BM_, CONSUMERS = CONSUMERS_;
  static constexpr int ROWS = 64, HALVES = HALVES_, COLUMNS = ROWS * HALVES;
  static constexpr int BN = COLUMNS * (TURNS ? 1 : CONSUMERS);
  static constexpr int THREADS = WARPGROUP * (CONSUMERS + 1);
  static constexpr int PIECE = piece(BM), OUT = OUT_ ? OUT_ : BM / PIECE;
  static constexpr int ROOM = ROOM_BYTES / int(sizeof(Element)) - CONSUMERS * OUT * ROWS * PIECE;
  static constexpr int FITTING = ROOM / ((BM + BN) * BK), STAGES = FITTING < 16 ? FITTING : 16;
  // Of a multiprocessor's registers, the producer's and a consumer's.
  static constexpr int FEW = CONSUMERS > 2 ? 32 : 40, MANY = CONSUMERS > 2 ? 160 : 232;
};

template <class S>  // what a thread of a consumer has of the product
using Sums = float[S::HALVES][S::BM / 2];

template <class S>
struct alignas(1024) Storage {
  Element a[S::STAGES][S::BM * BK], b[S::STAGES][S::BN * BK];
  Element out[S::CONSUMERS][S::OUT][S::ROWS * S::PIECE];
  Barrier full[S::STAGES], empty[S::STAGES], ready, sums;
};

// If `turned`, A and B have changed places, and m and n: what is told of C is told of C^T.
struct Work {
  int m, n, all_steps, steps;  // of BK along K; steps: of a part
  bool turned;
  Cluster cluster;
  int tiles_m, tiles_n;  // of whole clusters
  int group;             // lines of tiles along N that are worked on together, for the L2's sake
  bool by_tma;           // whether C can be stored by TMA
  bool early;            // whether the next launch may begin at once
};

// What a block multiplies before it turns to something else: a tile of C, all of K or some steps.
struct Part {
  int i0, j0;  // the tile's first row of A and column of B
  int first, steps;
  bool back;  // from the last step to the first

  __device__ int k(int step) const { return (first + (back ? steps - 1 - step : step)) * BK; }
};
