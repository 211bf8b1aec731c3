// Clusters of tiles: who has which tile, and who loads what for whom.
#pragma once

#include "hopper.cuh"

// Blocks whose tiles lie side by side, m of them along M and n along N. Those of a line share the
// tile of A, those of a column the tile of B: each loads a slice of it for all. `parts` such teams
// have the same tiles, each a part of K.
struct Cluster {
  int m, n, parts = 1;  // the grid's axes are, from last to first: m, n, clusters and their parts

  __host__ __device__ int team() const { return m * n; }
  __host__ __device__ int blocks() const { return m * n * parts; }
};

// Divisions take long before the first tile: all extents are powers of two.
__device__ int log2_of(int power) { return 31 - __clz(power); }

__device__ int clusters(const Cluster& c) { return gridDim.x >> log2_of(c.parts); }
__device__ int cluster_index(const Cluster& c) { return blockIdx.x >> log2_of(c.parts); }

// A block's place in its cluster.
struct Corner {
  int line = blockIdx.z, column = blockIdx.y, part;

  __device__ explicit Corner(const Cluster& c) : part(blockIdx.x & (c.parts - 1)) {}
};

__device__ int rank_of(const Cluster& c, int line, int column, int part) {
  return (line * c.n + column) * c.parts + part;
}

// Who fills a block's stages: the blocks of its line and of its column.
__device__ int fillers(const Cluster& c) { return c.m + c.n - 1; }

// The rank of the one that this lane tells when a stage is free, or one of these.
constexpr int NOBODY = -1, THIS_BLOCK = -2;

__device__ int filler(const Cluster& c) {
  const int lane = threadIdx.x % 32, other = lane - c.n;
  if (lane >= fillers(c)) return NOBODY;
  const Corner me(c);
  if (lane == me.column) return THIS_BLOCK;
  return other < 0 ? rank_of(c, me.line, lane, me.part)
                   : rank_of(c, other + (other >= me.line), me.column, me.part);
}

// The stage is free, as far as this warp is concerned.
__device__ void release(Barrier* empty, int filler) {
  if (filler == THIS_BLOCK) barrier_arrive(empty);
  else if (filler != NOBODY) barrier_arrive_at(empty, filler);
}
