// A persistent product: blocks stay, and take one tile of C after another.
#pragma once

#include "stores.cuh"
#include "wgmma_wide.cuh"

// What a block multiplies before it turns to something else: a tile of C, all of K or some steps.
struct Part {
  int i0, j0;  // the tile's first row of A and column of B
  int first, steps;
  bool back;  // from the last step to the first

  __device__ int k(int step) const { return (first + (back ? steps - 1 - step : step)) * BK; }
};

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

// The cluster's tile number t, all of K; mine: how many this block has had before. What was read
// last is still in the L2: every second tile goes back along K, and every second band along M.
template <class S>
__device__ Part whole_tile(const Work& w, int t, int mine) {
  const int band = w.group * w.tiles_m;
  const Corner at(w.cluster);
  const int first = t / band * w.group, lines = min(w.group, w.tiles_n - first);
  const int j = first + t % band % lines, line = t % band / lines;
  const int i = t / band % 2 ? w.tiles_m - 1 - line : line;
  return {(i * w.cluster.m + at.line) * S::BM, (j * w.cluster.n + at.column) * S::BN, 0, w.steps,
          mine % 2 == 1};
}

// Each of this block's tiles.
template <class S>
struct Tiles {
  const Work& w;

  template <class F>
  __device__ void each(F f) const {
    int mine = 0;
    const int blocks = w.cluster.blocks();
    for (int t = blockIdx.x / blocks; t < w.tiles_m * w.tiles_n; t += gridDim.x / blocks)
      f(whole_tile<S>(w, t, mine++));
  }
};

__device__ void load(Element* to, const CUtensorMap* map, int k, int line, Barrier* arrived,
                     int blocks, int which) {
  if (blocks > 1) tma_load_to_all(to, map, k, line, arrived, which);
  else tma_load(to, map, k, line, arrived);
}

// One thread keeps the ring full, across all parts. at_step: called before each step's loads.
template <class S, class Parts, class F>
__device__ void produce(Storage<S>& s, const CUtensorMap* A, const CUtensorMap* B, const Cluster& c,
                        Parts parts, F at_step) {
  constexpr int BYTES = (S::BM + S::BN) * BK * int(sizeof(Element));
  const Corner me(c);
  // What this block loads for all of its line, and of its column.
  const int slice_a = me.column * (S::BM / c.n), slice_b = me.line * (S::BN / c.m);
  const int line = ((1 << c.n) - 1) << me.line * c.n;
  int column = 0;
  for (int i = 0; i < c.m; ++i) column |= 1 << (i * c.n + me.column);
  Place<S> at;
  parts.each([&](const Part& part) {
    for (int step = 0; step < part.steps; ++step, at.advance()) {
      at_step();
      barrier_wait(&s.empty[at.stage], at.parity ^ 1);
      Barrier* const full = &s.full[at.stage];
      barrier_expect(full, BYTES);
      load(s.b[at.stage] + slice_b * BK, B, part.k(step), part.j0 + slice_b, full, c.m, column);
      load(s.a[at.stage] + slice_a * BK, A, part.k(step), part.i0 + slice_a, full, c.n, line);
    }
  });
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
    barrier_init_done();
  }
  if (c.blocks() > 1) cluster_sync();
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
    if (t == 0) {
      wait_for_launches_before();  // and so does everybody: the first tile comes after it
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
      if (w.by_tma) store_by_tma(s, &C_map, *sums, consumer, part.i0, j);
      else store_plainly<S>(C, *sums, w, part.i0, j + t % WARPGROUP / 32 * 16);
    });
    let_next_launch_begin();
    if (t % WARPGROUP == 0) tma_store_wait<0>();
  }
  // Nobody may leave while another block still arrives at its barriers.
  if (w.cluster.blocks() > 1) cluster_sync();
}
