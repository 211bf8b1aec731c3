// Clusters of tiles: who has which tile, and who loads what for whom.
#pragma once

#include "hopper.cuh"

// Blocks whose tiles lie side by side, m of them along M and n along N. Those of a line share the
// tile of A, those of a column the tile of B: each loads a part of it for all.
struct Cluster {
  int m, n;

  __host__ __device__ int blocks() const { return m * n; }
};

// A block's place in its cluster.
struct Corner {
  int line, column;

  __device__ explicit Corner(const Cluster& c) : line(0), column(0) {
    if (c.blocks() == 1) return;
    const int rank = cluster_rank();
    line = rank / c.n, column = rank % c.n;
  }
};

// Who fills a block's stages: the blocks of its line and of its column.
__device__ int fillers(const Cluster& c) { return c.m + c.n - 1; }

// The rank of the one that this lane tells when a stage is free, or one of these.
constexpr int NOBODY = -1, THIS_BLOCK = -2;

__device__ int filler(const Cluster& c) {
  const int lane = threadIdx.x % 32, other = lane - c.n;
  if (lane >= fillers(c)) return NOBODY;
  const Corner me(c);
  if (lane == me.column) return THIS_BLOCK;
  return other < 0 ? me.line * c.n + lane : (other + (other >= me.line)) * c.n + me.column;
}

// The stage is free, as far as this warp is concerned.
__device__ void release(Barrier* empty, int filler) {
  if (filler == THIS_BLOCK) barrier_arrive(empty);
  else if (filler != NOBODY) barrier_arrive_at(empty, filler);
}
