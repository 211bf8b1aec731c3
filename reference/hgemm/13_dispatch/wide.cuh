// The persistent product with tiles of 192 x 256, the largest whose sums fit into the registers.
#pragma once

#include "pace.cuh"
#include "product.cuh"

// The larger the tile, the less is read, from memory and from the L2, and what moves is power: each
// consumer has 192 x 128, and both share all of A's tile. C has room for one half at a time.
using Wide = Shape<192, 2, 3, 2, 2>;

// Where at most half of the clusters would have a tile in the last wave, two share each of these:
// one multiplies the first steps along K and leaves its sums, the other adds them to its own.
enum class Role { ALL, LEAVES, ADDS };

struct WidePart : Part {
  Role role;
  int place;  // where the sums are left
};

// How many of all tiles are shared.
inline int shared_tiles(int tiles, int clusters) {
  const int rest = tiles % clusters;
  return 2 * rest <= clusters ? rest : 0;
}

// Each of this block's parts; shared: how many tiles are, the last ones. Clusters that leave sums
// have the lower numbers: they run already when another one waits for them.
template <class S>
struct WideParts {
  const Work& w;
  int shared;
  int clusters = gridDim.x / S::CLUSTER, cluster = blockIdx.x / S::CLUSTER;
  int whole = w.tiles_m * w.tiles_n - shared;  // tiles that are not

  // Of the cluster that has the most.
  __device__ int most_steps() const {
    const int waves = (whole + clusters - 1) / clusters;
    return waves * w.steps + (shared ? w.steps - w.steps / 2 : 0);
  }

  template <class F>
  __device__ void each(F f) const {
    const int end = cluster < 2 * shared ? whole + clusters : whole;
    for (int t = cluster, mine = 0; t < end; t += clusters, ++mine) f(part(t, mine));
  }

 private:
  __device__ WidePart part(int t, int mine) const {
    if (t < whole) return {whole_tile<S>(w, t, mine), Role::ALL, 0};
    const int number = cluster % shared, place = number * S::CLUSTER + cluster_rank();
    WidePart half{whole_tile<S>(w, whole + number, mine), Role::LEAVES, place};
    half.steps = w.steps / 2;
    if (cluster >= shared) {
      half.role = Role::ADDS;
      half.first = half.steps;
      half.steps = w.steps - half.first;
    }
    return half;
  }
};

// One for each consumer that leaves sums: not more than multiprocessors. Zero between launches.
__device__ unsigned sums_left[1024];

template <class S>
constexpr int SUMS_LEFT = S::HALVES * S::BM / 8;  // float4s of a thread

template <class S>
__device__ void leave_sums(float4* to, const Sums<S>& sums, int consumer, int place) {
  const int slot = place * S::CONSUMERS + consumer, t = threadIdx.x % WARPGROUP;
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
__device__ void add_sums(const float4* from, Sums<S>& sums, int consumer, int place) {
  const int slot = place * S::CONSUMERS + consumer, t = threadIdx.x % WARPGROUP;
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

// Lines of C begin at multiples of 16 bytes. left: room for the sums of all shared tiles.
template <class S>
__global__ void __launch_bounds__(S::THREADS, 1)
    hgemm_wide(const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B,
               const __grid_constant__ CUtensorMap C, float4* left, const int shared,
               const Work w) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Storage<S>& s = *reinterpret_cast<Storage<S>*>(memory);
  const int t = threadIdx.x, group = t / WARPGROUP;
  prepare<S>(s, &A, &B, &C, 4 * S::CONSUMERS);

  if (group == 0) {
    keep_registers<40>();
    if (t == 0) {
      wait_for_launches_before();
      const WideParts<S> parts{w, shared};
      Pace pace(gridDim.x / S::CLUSTER, parts.most_steps());
      const bool counts = cluster_rank() == 0;
      produce(s, &A, &B, parts, [&] {
        if (counts) pace.step();
      });
      if (counts) pace.end();
    }
  } else {
    take_registers<232>();
    const int consumer = group - 1, column = consumer * S::COLUMNS;
    Place<S> at;
    WideParts<S>{w, shared}.each([&](const WidePart& part) {
      Sums<S> sums;
      multiply(s, at, sums, column, part.steps, [] {});
      if (part.role == Role::LEAVES) return leave_sums<S>(left, sums, consumer, part.place);
      if (part.role == Role::ADDS) add_sums<S>(left, sums, consumer, part.place);
#pragma unroll
      for (int h = 0; h < S::HALVES; ++h)
        store_by_tma(s, &C, sums[h], consumer, part.i0, part.j0 + column + h * S::ROWS);
    });
    let_next_launch_begin();
    if (t % WARPGROUP == 0) tma_store_wait<0>();
  }
  if constexpr (S::CLUSTER > 1) cluster_sync();
}
