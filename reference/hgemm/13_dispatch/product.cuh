// A persistent product: blocks stay, and take one tile of C after another.
#pragma once

#include "hopper.cuh"
#include "wgmma.cuh"

constexpr int WARPGROUP = 128, BK = 64;

// A tile of C is BM rows of A by BN columns of B, which is BN rows of the product C^T = B^T * A^T:
// each consumer, a warpgroup, has HALVES times ROWS of them. CLUSTER blocks have tiles side by side
// along N and share the tile of A. OUT: pieces of C that a consumer has room for, or 0 for all.
template <int BM_, int CONSUMERS_, int STAGES_, int CLUSTER_, int HALVES_ = 1, int OUT_ = 0>
struct Shape {
  static constexpr int BM = BM_, CONSUMERS = CONSUMERS_, STAGES = STAGES_, CLUSTER = CLUSTER_;
  static constexpr int ROWS = 64, HALVES = HALVES_, COLUMNS = ROWS * HALVES;
  static constexpr int BN = COLUMNS * CONSUMERS, THREADS = WARPGROUP * (CONSUMERS + 1);
  static constexpr int PIECE = BM % 64 ? 48 : 64, OUT = OUT_ ? OUT_ : BM / PIECE;
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
  int m, n, steps;       // steps: of BK along K
  int tiles_m, tiles_n;  // tiles_n: of whole clusters
  int group;             // lines of tiles along N that are worked on together, for the L2's sake
  bool by_tma;           // whether C can be stored by TMA
};

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
  const int band = w.group * w.tiles_m, rank = S::CLUSTER > 1 ? cluster_rank() : 0;
  const int first = t / band * w.group, lines = min(w.group, w.tiles_n - first);
  const int j = first + t % band % lines, line = t % band / lines;
  const int i = t / band % 2 ? w.tiles_m - 1 - line : line;
  return {i * S::BM, (j * S::CLUSTER + rank) * S::BN, 0, w.steps, mine % 2 == 1};
}

// Each of this block's tiles.
template <class S>
struct Tiles {
  const Work& w;

  template <class F>
  __device__ void each(F f) const {
    int mine = 0;
    for (int t = blockIdx.x / S::CLUSTER; t < w.tiles_m * w.tiles_n; t += gridDim.x / S::CLUSTER)
      f(whole_tile<S>(w, t, mine++));
  }
};

// One thread keeps the ring full, across all parts. at_step: called before each step's loads.
template <class S, class Parts, class F>
__device__ void produce(Storage<S>& s, const CUtensorMap* A, const CUtensorMap* B, Parts parts,
                        F at_step) {
  constexpr int SLICE = S::BM / S::CLUSTER;  // of A's tile, that this block fetches for all
  constexpr int BYTES = (S::BM + S::BN) * BK * int(sizeof(Element));
  const int slice = S::CLUSTER > 1 ? cluster_rank() * SLICE : 0;
  Place<S> at;
  parts.each([&](const Part& part) {
    for (int step = 0; step < part.steps; ++step, at.advance()) {
      at_step();
      barrier_wait(&s.empty[at.stage], at.parity ^ 1);
      Barrier* const full = &s.full[at.stage];
      barrier_expect(full, BYTES);
      tma_load(s.b[at.stage], B, part.k(step), part.j0, full);
      Element* const a = s.a[at.stage] + slice * BK;
      if constexpr (S::CLUSTER > 1)
        tma_load_to_all(a, A, part.k(step), part.i0 + slice, full, (1 << S::CLUSTER) - 1);
      else tma_load(a, A, part.k(step), part.i0, full);
    }
  });
}

// The stage is free, as far as this warp is concerned: every block of the cluster may fill it.
template <class S>
__device__ void release(Barrier* empty, int stage, int lane) {
  if constexpr (S::CLUSTER == 1) {
    if (lane == 0) barrier_arrive(&empty[stage]);
  } else if (lane < S::CLUSTER) {
    barrier_arrive_at(&empty[stage], lane);
  }
}

// sums = the product of these steps along K, for the consumer's columns of B from `column` of the
// tile on. Two steps are in flight: while one is multiplied, the next is already queued, and only
// then the stage before is released. at_last: called when the last tile has arrived.
template <class S, class F>
__device__ void multiply(Storage<S>& s, Place<S>& at, Sums<S>& sums, int column, int steps,
                         F at_last) {
  constexpr uint64_t HALF = S::ROWS * BK * sizeof(Element) / 16;
  const int lane = threadIdx.x % 32;
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
    if (step > 0) release<S>(s.empty, before, lane);
    before = at.stage;
  }
  wgmma_wait<0>();
  release<S>(s.empty, before, lane);
}

__device__ uint32_t pair(float low, float high) {
  alignas(4) const Element both[] = {Element(low), Element(high)};
  return *reinterpret_cast<const uint32_t*>(both);
}

// 64 lines of sums to shared memory, where lines of 128 bytes are swizzled: this lane's part.
template <int PIECE>
__device__ void put_piece(Element* piece, const float* sums, int row, int lane) {
#pragma unroll
  for (int q = 0; q < PIECE / 16; ++q) {  // 16 columns, two pieces of 16 bytes of the line
    const float* of = sums + q * 8;
    const int line_piece = (q * 2 + lane / 16) ^ (PIECE == 64 ? row % 8 : 0);
    store_matrices(&piece[row * PIECE + line_piece * 8], {pair(of[0], of[1]), pair(of[2], of[3]),
                                                          pair(of[4], of[5]), pair(of[6], of[7])});
  }
}

// The consumer's lines of C by TMA. All four warps put them together in shared memory, in pieces of
// 64 lines, as many as there is room for, which one thread stores.
template <class S>
__device__ void store_by_tma(Storage<S>& s, const CUtensorMap* C, const float (&sums)[S::BM / 2],
                             int consumer, int i0, int j) {
  const int t = threadIdx.x % WARPGROUP, lane = t % 32, row = t / 32 * 16 + lane % 16;
  auto& pieces = s.out[consumer];
#pragma unroll
  for (int first = 0; first < S::BM / S::PIECE; first += S::OUT) {
    if (t == 0) tma_store_wait<0>();  // the pieces before have been read
    warpgroup_sync(consumer);
#pragma unroll
    for (int p = 0; p < S::OUT; ++p)
      put_piece<S::PIECE>(pieces[p], sums + (first + p) * S::PIECE / 2, row, lane);
    tma_store_fence();
    warpgroup_sync(consumer);
    if (t == 0) {
#pragma unroll
      for (int p = 0; p < S::OUT; ++p) tma_store(C, i0 + (first + p) * S::PIECE, j, pieces[p]);
      tma_store_commit();
    }
  }
}

// The same where lines of C do not begin at multiples of 16 bytes.
template <class S>
__device__ void store_plainly(Element* C, const float (&sums)[S::BM / 2], const Work& w, int i0,
                              int j) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int e = 0; e < S::BM / 2; ++e) {
    const int row = j + lane / 4 + e / 2 % 2 * 8, i = i0 + e / 4 * 8 + lane % 4 * 2 + e % 2;
    if (i < w.m && row < w.n) C[size_t(row) * w.m + i] = Element(sums[e]);
  }
}

// Before anything else, the barriers of the ring. arrivals: of each block at an empty stage.
template <class S>
__device__ void prepare(Storage<S>& s, const CUtensorMap* A, const CUtensorMap* B,
                        const CUtensorMap* C, int arrivals) {
  if (threadIdx.x == 0) {
    prefetch_map(A);
    prefetch_map(B);
    prefetch_map(C);
    for (int stage = 0; stage < S::STAGES; ++stage) {
      barrier_init(&s.full[stage], 1);
      barrier_init(&s.empty[stage], S::CLUSTER * arrivals);
    }
    barrier_init_done();
  }
  if constexpr (S::CLUSTER > 1) cluster_sync();
  else __syncthreads();
}

template <class S>
__global__ void __launch_bounds__(S::THREADS, 1)
    hgemm(const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B,
          const __grid_constant__ CUtensorMap C_map, Element* C, const Work w) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Storage<S>& s = *reinterpret_cast<Storage<S>*>(memory);
  const int t = threadIdx.x, group = t / WARPGROUP;
  prepare<S>(s, &A, &B, &C_map, 4 * S::CONSUMERS);  // a lane of every warp

  if (group == 0) {
    keep_registers<40>();
    if (t == 0) {
      wait_for_launches_before();  // and so does everybody: the first tile comes after it
      produce(s, &A, &B, Tiles<S>{w}, [] {});
    }
  } else {
    take_registers<232>();
    const int consumer = group - 1;
    Place<S> at;
    Tiles<S>{w}.each([&](const Part& part) {
      Sums<S> sums;
      multiply(s, at, sums, consumer * S::COLUMNS, part.steps, [] {});
      const int j = part.j0 + consumer * S::COLUMNS;
      if (w.by_tma) store_by_tma(s, &C_map, *sums, consumer, part.i0, j);
      else store_plainly<S>(C, *sums, w, part.i0, j + t % WARPGROUP / 32 * 16);
    });
    let_next_launch_begin();
    if (t % WARPGROUP == 0) tma_store_wait<0>();
  }
  // Nobody may leave while another block still arrives at its barriers.
  if constexpr (S::CLUSTER > 1) cluster_sync();
}
