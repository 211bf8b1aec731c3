// C = A * B on tensor cores, where A and B lie split into parts. Blocks stay, and take one tile of
// C after another; a warp loads, two warpgroups multiply (reference/hgemm, rungs 9 to 12).
#pragma once

#include "hopper.cuh"
#include "wgmma.cuh"

// A number is the sum of PARTS elements of type T, largest first. Of the PARTS * PARTS products of
// parts those count whose places add up to less than DEPTH. LINE: bytes of a tile's line.
template <class T_, int PARTS_, int DEPTH_, int LINE_, int STAGES_>
struct Split {
  using T = T_;
  static constexpr int PARTS = PARTS_, DEPTH = DEPTH_, LINE = LINE_, STAGES = STAGES_;
  static constexpr int BK = LINE / int(sizeof(T)), STEPS = LINE / 32;  // of one wgmma each
};

constexpr int WARPGROUP = 128, CONSUMERS = 2, THREADS = WARPGROUP * (CONSUMERS + 1);
constexpr int BM = 128, ROWS = 128, BN = ROWS * CONSUMERS;  // ROWS of B's tile for each consumer
constexpr int BAND = 8;  // tiles along N that are worked on together, for the L2's sake

template <class S>
struct alignas(1024) Storage {
  typename S::T a[S::STAGES][S::PARTS][BM * S::BK], b[S::STAGES][S::PARTS][BN * S::BK];
  Barrier full[S::STAGES], empty[S::STAGES];
};

struct Work {
  int m, n, k;
  int tiles_m, tiles_n;
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
};

// Calls `f(i0, j0)` for each of this block's tiles, with the tile's first row of A and column of B.
template <class F>
__device__ void each_tile(const Work& w, F f) {
  const int tiles = w.tiles_m * w.tiles_n, band = BAND * w.tiles_m;
  for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
    const int first = t / band * BAND, lines = min(BAND, w.tiles_n - first);
    f(t % band / lines * BM, (first + t % band % lines) * BN);
  }
}

// One thread keeps the ring full, across tiles. Part q of A begins q * m lines on.
template <class S>
__device__ void produce(Storage<S>& s, const CUtensorMap* A, const CUtensorMap* B, const Work& w) {
  Place<S> at;
  each_tile(w, [&](int i0, int j0) {
    for (int p = 0; p < w.k; p += S::BK, at.advance()) {
      barrier_wait(&s.empty[at.stage], at.parity ^ 1);
      Barrier* const full = &s.full[at.stage];
      barrier_expect(full, S::PARTS * (BM + BN) * S::LINE);
#pragma unroll
      for (int part = 0; part < S::PARTS; ++part) {
        tma_load(s.a[at.stage][part], A, p, part * w.m + i0, full);
        tma_load(s.b[at.stage][part], B, p, part * w.n + j0, full);
      }
    }
  });
}

// sums = 64 rows of B's tile, from `row` on, by A's tile: all products of parts that count, the
// smallest first.
template <class S>
__device__ void multiply_parts(float (&sums)[BM / 2], const Storage<S>& s, int stage, int row) {
  bool adds = false;
  wgmma_fence();
#pragma unroll
  for (int depth = S::DEPTH - 1; depth >= 0; --depth)
#pragma unroll
    for (int x = 0; x < S::PARTS; ++x) {
      const int y = depth - x;
      if (y < 0 || y >= S::PARTS) continue;
      const uint64_t b = tile_descriptor<S::LINE>(s.b[stage][x] + row * S::BK);
      const uint64_t a = tile_descriptor<S::LINE>(s.a[stage][y]);
#pragma unroll
      for (int q = 0; q < S::STEPS; ++q) {
        wgmma(sums, b + q * step_along_k, a + q * step_along_k, adds);
        adds = true;
      }
    }
  wgmma_commit();
  wgmma_wait<0>();
}

// Two neighbours in a column of C.
__device__ void store_pair(float* column, int i, int m, float first, float second) {
  if (m % 2 == 0 && i < m) {
    *reinterpret_cast<float2*>(column + i) = make_float2(first, second);
  } else {
    if (i < m) column[i] = first;
    if (i + 1 < m) column[i + 1] = second;
  }
}

// A and B: the parts, one below the other, in lines along K.
template <class S>
__global__ void __launch_bounds__(THREADS, 1)
    multiply(const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B, float* C,
             const Work w) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Storage<S>& s = *reinterpret_cast<Storage<S>*>(memory);
  const int t = threadIdx.x, lane = t % 32;
  if (t == 0) {
    for (int stage = 0; stage < S::STAGES; ++stage) {
      barrier_init(&s.full[stage], 1);
      barrier_init(&s.empty[stage], CONSUMERS * 4);  // a lane of every warp
    }
    barrier_init_done();
  }
  __syncthreads();
  if (t < WARPGROUP) {
    keep_registers<24>();
    if (t == 0) produce(s, &A, &B, w);
    return;
  }
  take_registers<240>();
  const int first = (t / WARPGROUP - 1) * ROWS;  // of this consumer's rows of B's tile
  Place<S> at;
  each_tile(w, [&](int i0, int j0) {
    float sums[2][BM / 2] = {};
    for (int p = 0; p < w.k; p += S::BK, at.advance()) {
      barrier_wait(&s.full[at.stage], at.parity);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float some[BM / 2];  // of BK values of k
        multiply_parts(some, s, at.stage, first + 64 * half);
#pragma unroll
        for (int e = 0; e < BM / 2; ++e) sums[half][e] += some[e];
      }
      if (lane == 0) barrier_arrive(&s.empty[at.stage]);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int e = 0; e < BM / 2; e += 2) {
        const int j = j0 + first + 64 * half + t % WARPGROUP / 32 * 16 + lane / 4 + e / 2 % 2 * 8;
        const int i = i0 + e / 4 * 8 + lane % 4 * 2;
        if (j < w.n) store_pair(C + size_t(j) * w.m, i, w.m, sums[half][e], sums[half][e + 1]);
      }
  });
}

// Lines of `k` elements, a multiple of 16 bytes.
template <class S>
void launch_product(const typename S::T* A, const typename S::T* B, float* C, int m, int n, int k) {
  const Work w{m, n, k, (m + BM - 1) / BM, (n + BN - 1) / BN};
  int sms = 0;
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
  const int blocks = w.tiles_m * w.tiles_n < sms ? w.tiles_m * w.tiles_n : sms;
  cudaFuncSetAttribute(multiply<S>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       sizeof(Storage<S>));
  multiply<S><<<blocks, THREADS, sizeof(Storage<S>)>>>(tensor_map<S::LINE>(A, S::PARTS * m, k, BM),
                                                       tensor_map<S::LINE>(B, S::PARTS * n, k, BN),
                                                       C, w);
}
