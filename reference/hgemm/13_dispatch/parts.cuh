// Where the blocks of a cluster share a tile along K, they add what they have through their shared
// memory.
#pragma once

#include "stores.cuh"

// Sums are exchanged in chunks: of a thread, the 4 that lie in 8 neighbouring columns. The parts
// take turns at them. Each has room for those of all parts, where the stages were.
template <class S>
constexpr int CHUNKS = S::BM / 8;
constexpr int MOST_PARTS = 8;  // the largest cluster that every GPU has

template <class S>
using Chunks = float4[CHUNKS<S> + MOST_PARTS - 1][S::CONSUMERS * WARPGROUP];

template <class S>
__device__ Chunks<S>& chunks(Storage<S>& s) {
  static_assert(sizeof(Chunks<S>) <= sizeof(s.a) + sizeof(s.b));
  return reinterpret_cast<Chunks<S>&>(s.a);
}

// How many a part adds whose first one is `first`.
template <class S>
__device__ int chunks_from(int first, const Cluster& c) {
  return (CHUNKS<S> + c.parts - 1 - first) >> log2_of(c.parts);
}

template <class S>
__device__ int bytes_of_sums(const Cluster& c) {
  const int chunks = chunks_from<S>(Corner(c).part, c) * c.parts;
  return chunks * S::CONSUMERS * WARPGROUP * int(sizeof(float4));
}

// Each block's sums go to those who add them, all at the same time, when nobody multiplies any
// longer.
template <class S>
__device__ void send_sums(Storage<S>& s, const float (&sums)[S::BM / 2], const Cluster& c) {
  const int t = threadIdx.x - WARPGROUP, part = Corner(c).part, first = cluster_rank() - part;
  const int place = part * chunks_from<S>(0, c), shift = log2_of(c.parts);
  if (t % 32 < c.parts) barrier_arrive_at(&s.ready, first + t % 32);
  barrier_wait(&s.ready, 0);
#pragma unroll
  for (int chunk = 0; chunk < CHUNKS<S>; ++chunk) {
    const float* of = sums + chunk * 4;
    store_at(&chunks(s)[place + (chunk >> shift)][t], first + (chunk & (c.parts - 1)),
             {of[0], of[1], of[2], of[3]}, &s.sums);
  }
}

// Two neighbours in a row of C^T.
__device__ void store_pair(Element* C, const Work& w, int row, int i, float x, float y) {
  if (row >= w.n || i >= w.m) return;
  Element* const to = C + (w.turned ? size_t(i) * w.n + row : size_t(row) * w.m + i);
  if (!w.turned && w.m % 2 == 0) {
    *reinterpret_cast<uint32_t*>(to) = pair(x, y);
  } else {
    to[0] = Element(x);
    if (i + 1 < w.m) to[w.turned ? w.n : 1] = Element(y);
  }
}

// This block's chunks of all parts, to C.
template <class S>
__device__ void add_parts(Storage<S>& s, Element* C, const Work& w, int i0, int j) {
  const int t = threadIdx.x - WARPGROUP, each = chunks_from<S>(0, w.cluster);
  const int parts = w.cluster.parts, row = j + t % WARPGROUP / 32 * 16 + t % 32 / 4;
  barrier_wait(&s.sums, 0);
#pragma unroll 1
  for (int chunk = Corner(w.cluster).part, place = 0; chunk < CHUNKS<S>; chunk += parts, ++place) {
    float4 sum = chunks(s)[place][t];
    for (int p = 1; p < parts; ++p) {
      const float4 more = chunks(s)[p * each + place][t];
      sum = {sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w};
    }
    const int i = i0 + chunk * 8 + t % 4 * 2;
    store_pair(C, w, row, i, sum.x, sum.y);
    store_pair(C, w, row + 8, i, sum.z, sum.w);
  }
}
