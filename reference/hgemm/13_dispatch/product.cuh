// A persistent product: blocks stay, and take one tile of C after another.
#pragma once

#include "parts.cuh"
#include "wgmma.cuh"

// A place in the ring of stages. The parity changes whenever the ring has been gone round.
template <class S>
struct Place {
  int stage = 0, parity = 0;
  __device__ void advance() {
    if (++stage == S::STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }
  __device__ void skip(int steps) {
    parity ^= (stage + steps) / S::STAGES % 2;
    stage = (stage + steps) % S::STAGES;
  }
};

// The cluster's tile number t, the block's part of K; mine: how many this block has had before.
// What was read last is still in the L2: every second tile goes back along K, and every second band
// along M.
template <class S>
__device__ Part whole_tile(const Work& w, unsigned t, int mine) {
  const unsigned size = w.group * w.tiles_m, band = t < size ? 0 : t / size;
  const unsigned first = band * w.group, lines = min(w.group, w.tiles_n - first);
  const unsigned line = (t - band * size) / lines, j = first + t - band * size - line * lines;
  const unsigned i = band % 2 ? w.tiles_m - 1 - line : line;
  const Corner at(w.cluster);
  const int begin = at.part * w.steps;
  return {int(i * w.cluster.m + at.line) * S::BM, int(j * w.cluster.n + at.column) * S::BN, begin,
          min(w.steps, w.all_steps - begin), mine % 2 == 1};
}

// Each of this block's tiles.
template <class S>
struct Tiles {
  const Work& w;

  template <class F>
  __device__ void each(F f) const {
    int mine = 0;
    for (int t = cluster_index(w.cluster); t < w.tiles_m * w.tiles_n; t += clusters(w.cluster))
      f(whole_tile<S>(w, t, mine++));
  }
};

__device__ void load(Element* to, const CUtensorMap* map, int k, int line, Barrier* arrived,
                     int blocks, int which) {
  if (blocks > 1) tma_load_to_all(to, map, k, line, arrived, which);
  else tma_load(to, map, k, line, arrived);
}

// One thread keeps the ring full, across all parts, and stays until nobody else of the cluster will
// arrive at its barriers. at_step: called before each step's loads.
template <class S, class Parts, class F>
__device__ void produce(Storage<S>& s, const CUtensorMap* A, const CUtensorMap* B, const Cluster& c,
                        Parts parts, F at_step) {
  constexpr int BYTES = (S::BM + S::BN) * BK * int(sizeof(Element));
  const Corner me(c);
  // What this block loads for all of its line, and of its column.
  const int slice_a = me.column * (S::BM >> log2_of(c.n));
  const int slice_b = me.line * (S::BN >> log2_of(c.m));
  int line = 0, column = 0;
#pragma unroll 1
  for (int j = 0; j < c.n; ++j) line |= 1 << rank_of(c, me.line, j, me.part);
#pragma unroll 1
  for (int i = 0; i < c.m; ++i) column |= 1 << rank_of(c, i, me.column, me.part);
  Place<S> at;
  bool waited = false;
  parts.each([&](const Part& part) {
    if (!waited) wait_for_launches_before();  // and so does everybody: the first tile comes after
    waited = true;
    for (int step = 0; step < part.steps; ++step, at.advance()) {
      at_step();
      barrier_wait(&s.empty[at.stage], at.parity ^ 1);
      Barrier* const full = &s.full[at.stage];
      barrier_expect(full, BYTES);
      load(s.b[at.stage] + slice_b * BK, B, part.k(step), part.j0 + slice_b, full, c.m, column);
      load(s.a[at.stage] + slice_a * BK, A, part.k(step), part.i0 + slice_a, full, c.n, line);
    }
  });
  if (c.team() == 1) return;
  for (int stage = 0; stage < S::STAGES; ++stage, at.advance())
    barrier_wait(&s.empty[at.stage], at.parity ^ 1);
}

// sums = the product of these steps along K, for the consumer's columns of B from `column` of the
// tile on. Two steps are in flight: while one is multiplied, the next is already queued, and only
// then the stage before is released. at_last: called when the last tile has arrived.
template <class S, class F>
__device__ void multiply(Storage<S>& s, Place<S>& at, Sums<S>& sums, int column, int steps,
                         int filler, F at_last) {
  constexpr uint64_t HALF = S::ROWS * BK * sizeof(Element) / 16;
  int before = 0;
  for (int step = 0; step < steps; ++step, at.advance()) {
    barrier_wait(&s.full[at.stage], at.parity);
    if (step == steps - 1) at_last();
    const uint64_t a = tile_descriptor(s.a[at.stage]);
    const uint64_t b = tile_descriptor(s.b[at.stage] + column * BK);
    wgmma_fence();
#pragma unroll
    for (int q = 0; q < BK / 16; ++q)
#pragma unroll
      for (int h = 0; h < S::HALVES; ++h)
        wgmma<S::BM>(sums[h], b + h * HALF + q * step_along_k, a + q * step_along_k, step + q > 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (step > 0) release(&s.empty[before], filler);
    before = at.stage;
  }
  wgmma_wait<0>();
  release(&s.empty[before], filler);
}

// Before anything else, the barriers of the ring. arrivals: of each block at an empty stage.
template <class S>
__device__ void prepare(Storage<S>& s, const CUtensorMap* A, const CUtensorMap* B,
                        const CUtensorMap* C, const Cluster& c, int arrivals) {
  if (threadIdx.x == 0) {
    prefetch_map(A);
    prefetch_map(B);
    prefetch_map(C);
    for (int stage = 0; stage < S::STAGES; ++stage) {
      barrier_init(&s.full[stage], 1);
      barrier_init(&s.empty[stage], fillers(c) * arrivals);
    }
    barrier_init(&s.ready, 4 * S::CONSUMERS * c.parts);
    barrier_init(&s.sums, 1);
    barrier_init_done();
  }
  if (c.blocks() > 1) cluster_start();
  else __syncthreads();
}

template <class S>
__global__ void __launch_bounds__(S::THREADS, 1)
    hgemm(const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B,
          const __grid_constant__ CUtensorMap C_map, Element* C, const Work w) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Storage<S>& s = *reinterpret_cast<Storage<S>*>(memory);
  const int t = threadIdx.x, group = t / WARPGROUP;
  prepare<S>(s, &A, &B, &C_map, w.cluster, 4 * S::CONSUMERS);  // a lane of every warp
  if (w.early) let_next_launch_begin();

  if (group == 0) {
    keep_registers<S::FEW>();
    if (t / 32 == 0 && elected()) {
      if (w.cluster.parts > 1) barrier_expect(&s.sums, bytes_of_sums<S>(w.cluster));
      produce(s, &A, &B, w.cluster, Tiles<S>{w}, [] {});
    }
  } else {
    take_registers<S::MANY>();
    const int consumer = group - 1, free = filler(w.cluster);
    Place<S> at;
    Tiles<S>{w}.each([&](const Part& part) {
      Sums<S> sums;
      multiply(s, at, sums, consumer * S::COLUMNS, part.steps, free, [] {});
      const int j = part.j0 + consumer * S::COLUMNS;
      if (w.cluster.parts == 1)
        return store(s, &C_map, *sums, w, consumer, part.i0, j, w.by_tma ? nullptr : C);
      let_next_launch_begin();
      send_sums<S>(s, *sums, w.cluster);
      add_parts<S>(s, C, w, part.i0, j);
    });
    let_next_launch_begin();
    if (t % WARPGROUP == 0) tma_store_wait<0>();
  }
}
