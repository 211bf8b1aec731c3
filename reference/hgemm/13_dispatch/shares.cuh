// The persistent product whose last tiles are shared evenly along K.
#pragma once

#include "pace.cuh"
#include "product.cuh"

// Where tiles do not fill the last wave, all clusters share that wave's and the one's before it,
// tile after tile: each takes as many steps along K, whether or not it ends with a tile. Who has
// the end of a tile adds the sums of those who had its beginning, in their order, and stores it.
struct Sharing {
  int tiles, steps;  // the last so many; steps: of each cluster
};

// As few steps as `clusters` end with together; nothing is shared where tiles fill no wave.
inline Sharing share(int tiles, int steps, int clusters) {
  const int rest = tiles % clusters;
  if (rest == 0 || tiles < clusters) return {0, 0};
  return {clusters + rest, ((clusters + rest) * steps + clusters - 1) / clusters};
}

struct SharedPart : Part {
  bool leaves;
  int adds;  // sums of so many clusters, those before this one
};

// Each of this block's parts: whole tiles, then those of what is shared. In these every cluster has
// whole tiles first, then the beginning of one, then the end of one: so all that multiply at the
// same time have one of two places along K, and find lines in the L2; and what a cluster adds was
// left long before, by clusters with lower numbers, which run already.
template <class S>
struct Shares {
  const Work& w;
  const Sharing shared;
  int clusters = ::clusters(w.cluster), cluster = cluster_index(w.cluster);
  int whole = w.tiles_m * w.tiles_n - shared.tiles;  // tiles that are not shared
  int begin = min(cluster * shared.steps, shared.tiles* w.steps);
  int end = min(begin + shared.steps, shared.tiles* w.steps);

  // Of the cluster that has the most.
  __device__ int most_steps() const {
    return (whole + clusters - 1) / clusters * w.steps + shared.steps;
  }

  template <class F>
  __device__ void each(F f) const {
    const int before = max(0, (whole - cluster + clusters - 1) / clusters);
    const int first = (begin + w.steps - 1) / w.steps, last = end / w.steps;  // whole ones
    const int full = max(0, last - first), leaves = end > last * w.steps && end > begin;
    const int adds = first <= last && begin < first * w.steps;
#pragma unroll 1
    for (int i = 0; i < before + full + leaves + adds; ++i) {
      const int tile = first + i - before;
      f(i < before          ? SharedPart{whole_tile<S>(w, cluster + i * clusters, i), false, 0}
        : i < before + full ? part(tile, tile * w.steps, (tile + 1) * w.steps)
        : i == before + full && leaves ? part(last, max(begin, last * w.steps), end)
                                       : part(first - 1, begin, first * w.steps));
    }
  }

 private:
  // Steps from `from` to `to` of all that are shared, which are of this tile.
  __device__ SharedPart part(int tile, int from, int to) const {
    SharedPart some{whole_tile<S>(w, whole + tile, whole / clusters), false, 0};
    const int origin = tile * w.steps, steps = to - from;
    some.first = some.back ? origin + w.steps - to : from - origin;
    some.steps = steps;
    some.leaves = to < origin + w.steps;
    if (!some.leaves && from > origin) some.adds = cluster - origin / shared.steps;
    return some;
  }
};

// One for each consumer that leaves sums: not more than multiprocessors. Zero between launches.
__device__ unsigned sums_left[1024];

template <class S>
constexpr int SUMS_LEFT = S::HALVES * S::BM / 8;  // float4s of a thread

template <class S>
__host__ __device__ int slots(const Cluster& c) {
  return c.blocks() * S::CONSUMERS;
}

template <class S>
__device__ void leave_sums(float4* to, const Sums<S>& sums, int consumer, int slot) {
  const int t = threadIdx.x % WARPGROUP;
  to += slot * SUMS_LEFT<S> * WARPGROUP + t;
#pragma unroll
  for (int h = 0; h < S::HALVES; ++h)
#pragma unroll
    for (int e = 0; e < S::BM / 2; e += 4, to += WARPGROUP)
      *to = {sums[h][e], sums[h][e + 1], sums[h][e + 2], sums[h][e + 3]};
  __threadfence();
  warpgroup_sync(consumer);
  if (t == 0) atomicExch(&sums_left[slot], 1);
}

template <class S>
__device__ void add_sums(const float4* from, Sums<S>& sums, int consumer, int slot) {
  const int t = threadIdx.x % WARPGROUP;
  from += slot * SUMS_LEFT<S> * WARPGROUP + t;
  if (t == 0)
    while (atomicCAS(&sums_left[slot], 1, 0) != 1);
  __threadfence();
  warpgroup_sync(consumer);
#pragma unroll
  for (int h = 0; h < S::HALVES; ++h)
#pragma unroll
    for (int e = 0; e < S::BM / 2; e += 4, from += WARPGROUP) {
      const float4 left = __ldcg(from);
      sums[h][e] += left.x;
      sums[h][e + 1] += left.y;
      sums[h][e + 2] += left.z;
      sums[h][e + 3] += left.w;
    }
}

// Lines of C begin at multiples of 16 bytes. left: room for `slots` of each cluster.
template <class S>
__global__ void __launch_bounds__(S::THREADS, 1)
    hgemm_shared(const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B,
                 const __grid_constant__ CUtensorMap C, float4* left, const Sharing shared,
                 const bool keeps_pace, const Work w) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Storage<S>& s = *reinterpret_cast<Storage<S>*>(memory);
  const int t = threadIdx.x, group = t / WARPGROUP;
  prepare<S>(s, &A, &B, &C, w.cluster, 4 * S::CONSUMERS);

  if (group == 0) {
    keep_registers<S::FEW>();
    if (t / 32 == 0 && elected()) {
      const Shares<S> parts{w, shared};
      Pace pace(clusters(w.cluster), parts.most_steps());
      const bool counts = keeps_pace && cluster_rank() == 0;
      produce(s, &A, &B, w.cluster, parts, [&] {
        if (counts) pace.step();
      });
      if (counts) pace.end();
    }
  } else {
    take_registers<S::MANY>();
    const int consumer = group - 1, column = consumer * S::COLUMNS, free = filler(w.cluster);
    Place<S> at;
    Shares<S>{w, shared}.each([&](const SharedPart& part) {
      Sums<S> sums;
      multiply(s, at, sums, column, part.steps, free, [] {});
      const int block = cluster_index(w.cluster) * w.cluster.blocks() + cluster_rank();
      const int slot = block * S::CONSUMERS + consumer;
      if (part.leaves) return leave_sums<S>(left, sums, consumer, slot);
#pragma unroll 1
      for (int before = part.adds; before > 0; --before)
        add_sums<S>(left, sums, consumer, slot - before * slots<S>(w.cluster));
#pragma unroll
      for (int h = 0; h < S::HALVES; ++h)
        store(s, &C, sums[h], w, consumer, part.i0, part.j0 + column + h * S::ROWS);
    });
    let_next_launch_begin();
    if (t % WARPGROUP == 0) tma_store_wait<0>();
  }
}
