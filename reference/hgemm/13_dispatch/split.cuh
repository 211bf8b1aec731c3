// A product of few tiles: the blocks of a cluster share each along K, and add what they have
// through their shared memory.
#pragma once

#include "product.cuh"

// The largest cluster that every GPU has.
constexpr int MOST_PARTS = 8;

// A tile of C is BM rows of A by 64 columns of B, for one consumer. Sums are exchanged in chunks:
// of a thread, the 4 that lie in 8 neighbouring columns. Each block has some chunks to add.
template <int BM_, int STAGES_>
struct SplitShape : Shape<BM_, 1, STAGES_> {
  static constexpr int THREADS = WARPGROUP + 32, CHUNKS = BM_ / 8;
};

template <class S>
struct alignas(1024) SplitStorage {
  Element a[S::STAGES][S::BM * BK], b[S::STAGES][S::BN * BK];
  float4 sums[S::CHUNKS + MOST_PARTS - 1][WARPGROUP];  // of every block, for this one's chunks
  Barrier full[S::STAGES], empty[S::STAGES];
};

// Two neighbours in a row of C^T.
__device__ void store_pair(Element* C, const Work& w, int row, int i, float x, float y) {
  if (row >= w.n || i >= w.m) return;
  Element* const to = C + size_t(row) * w.m + i;
  if (w.m % 2 == 0) {
    *reinterpret_cast<uint32_t*>(to) = pair(x, y);
  } else {
    to[0] = Element(x);
    if (i + 1 < w.m) to[1] = Element(y);
  }
}

template <class S>
__device__ void store_chunk(Element* C, const Work& w, int row, int i, float4 of) {
  store_pair(C, w, row, i, of.x, of.y);
  store_pair(C, w, row + 8, i, of.z, of.w);
}

// The product of the steps from `first` to `last`, of the tile at (i0, j0).
template <class S>
__device__ void produce_part(SplitStorage<S>& s, const CUtensorMap* A, const CUtensorMap* B, int i0,
                             int j0, int first, int last) {
  Place<S> at;
  for (int step = first; step < last; ++step, at.advance()) {
    barrier_wait(&s.empty[at.stage], at.parity ^ 1);
    Barrier* const full = &s.full[at.stage];
    barrier_expect(full, (S::BM + S::BN) * BK * int(sizeof(Element)));
    tma_load(s.b[at.stage], B, step * BK, j0, full);
    tma_load(s.a[at.stage], A, step * BK, i0, full);
  }
}

// Each block's sums go to those who add them, all at the same time; then C is stored.
template <class S>
__device__ void add_parts(SplitStorage<S>& s, const float (&sums)[S::BM / 2], Element* C,
                          const Work& w, int part, int parts, int row, int i) {
  const int t = threadIdx.x, each = (S::CHUNKS + parts - 1) / parts;
  cluster_wait();  // all have begun
#pragma unroll
  for (int c = 0; c < S::CHUNKS; ++c) {
    const int owner = c / each;
    const float* of = sums + c * 4;
    store_at(&s.sums[part * each + c - owner * each][t], owner, {of[0], of[1], of[2], of[3]});
  }
  cluster_arrive();
  cluster_wait();
  const int begin = part * each, end = min(begin + each, S::CHUNKS);
#pragma unroll 1
  for (int c = begin; c < end; ++c) {
    float4 sum = s.sums[c - begin][t];
    for (int p = 1; p < parts; ++p) {
      const float4 more = s.sums[p * each + c - begin][t];
      sum = {sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w};
    }
    store_chunk<S>(C, w, row, i + c * 8, sum);
  }
}

template <class S>
__global__ void __launch_bounds__(S::THREADS)
    hgemm_split(const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B,
                Element* C, const Work w) {
  extern __shared__ __align__(1024) unsigned char memory[];
  SplitStorage<S>& s = *reinterpret_cast<SplitStorage<S>*>(memory);
  const int parts = w.cluster.blocks(), part = blockIdx.x % parts, tile = blockIdx.x / parts;
  const int i0 = tile % w.tiles_m * S::BM, j0 = tile / w.tiles_m * S::BN;
  const int first = w.steps * part / parts, last = w.steps * (part + 1) / parts;
  const int t = threadIdx.x, lane = t % 32;
  if (t == 0) {
    for (int stage = 0; stage < S::STAGES; ++stage) {
      barrier_init(&s.full[stage], 1);
      barrier_init(&s.empty[stage], 4);
    }
    barrier_init_done();
  }
  __syncthreads();
  if (parts > 1) cluster_arrive();

  if (t >= WARPGROUP) {
    if (lane == 0) {
      wait_for_launches_before();
      produce_part(s, &A, &B, i0, j0, first, last);
    }
    __syncwarp();
    if (parts == 1) return;
    cluster_wait();
    cluster_arrive();
    cluster_wait();
    return;
  }
  float sums[S::BM / 2];
  int before = 0;
  Place<S> at;
#pragma unroll 1
  for (int step = first; step < last; ++step, at.advance()) {
    barrier_wait(&s.full[at.stage], at.parity);
    const uint64_t a = tile_descriptor(s.a[at.stage]), b = tile_descriptor(s.b[at.stage]);
    wgmma_fence();
#pragma unroll
    for (int q = 0; q < BK / 16; ++q)
      wgmma<S::BM>(sums, b + q * step_along_k, a + q * step_along_k, step - first + q > 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (step > first && lane == 0) barrier_arrive(&s.empty[before]);
    before = at.stage;
  }
  wgmma_wait<0>();
  let_next_launch_begin();
  const int row = j0 + t / 32 * 16 + lane / 4, i = i0 + lane % 4 * 2;
  if (parts > 1) return add_parts<S>(s, sums, C, w, part, parts, row, i);
#pragma unroll
  for (int c = 0; c < S::CHUNKS; ++c)
    store_chunk<S>(C, w, row, i + c * 8,
                   {sums[c * 4], sums[c * 4 + 1], sums[c * 4 + 2], sums[c * 4 + 3]});
}
