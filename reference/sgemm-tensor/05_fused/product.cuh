// C = A * B on tensor cores, where tiles are split into TF32 parts on the way. Blocks stay, and
// take one tile of C after another; a warp loads, three split, two warpgroups multiply.
#pragma once

#include "hopper.cuh"
#include "wgmma.cuh"

constexpr int WARPGROUP = 128, CONSUMERS = 2, THREADS = WARPGROUP * (CONSUMERS + 1);
constexpr int SPLITTERS = WARPGROUP - 32;
constexpr int BM = 128, ROWS = 128, BN = ROWS * CONSUMERS;  // ROWS of B's tile for each consumer
constexpr int BK = 32, STEPS = BK / 8, STAGES = 3, LINE = BK * int(sizeof(float));
constexpr int BAND = 8;  // tiles along N that are worked on together, for the L2's sake

struct alignas(1024) Storage {
  float a[STAGES][2][BM * BK], b[STAGES][BN * BK];  // A's two parts; at first a[...][0] is A
  Barrier full[STAGES], split[STAGES], empty[STAGES];
};

struct Work {
  int m, n, k;
  int tiles_m, tiles_n;
};

// A place in the ring of stages. The parity changes whenever the ring has been gone round.
struct Place {
  int stage = 0, parity = 0;
  __device__ void advance() {
    if (++stage == STAGES) {
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

// One thread keeps the ring full, across tiles.
__device__ void produce(Storage& s, const CUtensorMap* A, const CUtensorMap* B, const Work& w) {
  Place at;
  each_tile(w, [&](int i0, int j0) {
    for (int p = 0; p < w.k; p += BK, at.advance()) {
      barrier_wait(&s.empty[at.stage], at.parity ^ 1);
      Barrier* const full = &s.full[at.stage];
      barrier_expect(full, (BM + BN) * LINE);
      tma_load(s.a[at.stage][0], A, p, i0, full);
      tma_load(s.b[at.stage], B, p, j0, full);
    }
  });
}

// `x` with the 10 bits of a TF32 number's fraction; halves are rounded away from zero.
__device__ float round_to_tf32(float x) {
  return __uint_as_float((__float_as_uint(x) + 0x1000) & 0xffffe000);
}

// Leaves the larger part of `x` there, and returns the rest.
__device__ float split_off(float& x) {
  const float high = round_to_tf32(x), low = x - high;
  x = high;
  return low;
}

// Three warps split A's tiles where they lie: the swizzle does not matter to them.
__device__ void split_tiles(Storage& s, const Work& w) {
  Place at;
  each_tile(w, [&](int, int) {
    for (int p = 0; p < w.k; p += BK, at.advance()) {
      float4* const high = reinterpret_cast<float4*>(s.a[at.stage][0]);
      float4* const low = reinterpret_cast<float4*>(s.a[at.stage][1]);
      barrier_wait(&s.full[at.stage], at.parity);
#pragma unroll 2
      for (int q = threadIdx.x - 32; q < BM * BK / 4; q += SPLITTERS) {
        float4 x = high[q];
        low[q] = make_float4(split_off(x.x), split_off(x.y), split_off(x.z), split_off(x.w));
        high[q] = x;
      }
      async_proxy_fence();
      barrier_arrive(&s.split[at.stage]);
    }
  });
}

// sums = 64 rows of B's tile, from `row` on, by A's tile: three products, the smallest first.
__device__ void multiply_parts(float (&sums)[BM / 2], const Storage& s, int stage, int row) {
  uint32_t high[STEPS][4], low[STEPS][4];
  const int lane = threadIdx.x % 32, mine = row + threadIdx.x % WARPGROUP / 32 * 16 + lane / 4;
#pragma unroll
  for (int q = 0; q < STEPS; ++q)
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int piece = (q * 2 + e / 2) ^ lane / 4;  // swizzled, as TMA does
      float x = s.b[stage][(mine + e % 2 * 8) * BK + piece * 4 + lane % 4];
      low[q][e] = __float_as_uint(split_off(x));
      high[q][e] = __float_as_uint(x);
    }
  const uint64_t a_high = tile_descriptor<LINE>(s.a[stage][0]);
  const uint64_t a_low = tile_descriptor<LINE>(s.a[stage][1]);
  wgmma_fence();
#pragma unroll
  for (int q = 0; q < STEPS; ++q) wgmma(sums, low[q], a_high + q * step_along_k, q > 0);
#pragma unroll
  for (int q = 0; q < STEPS; ++q) wgmma(sums, high[q], a_low + q * step_along_k, true);
#pragma unroll
  for (int q = 0; q < STEPS; ++q) wgmma(sums, high[q], a_high + q * step_along_k, true);
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

// A warpgroup multiplies: all tiles of ROWS rows of B's tiles, from `first` on.
__device__ void consume(Storage& s, float* C, const Work& w, int first) {
  const int t = threadIdx.x, lane = t % 32;
  Place at;
  each_tile(w, [&](int i0, int j0) {
    float sums[2][BM / 2] = {};
    for (int p = 0; p < w.k; p += BK, at.advance()) {
      barrier_wait(&s.full[at.stage], at.parity);
      barrier_wait(&s.split[at.stage], at.parity);
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

__global__ void __launch_bounds__(THREADS, 1)
    multiply(const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B, float* C,
             const Work w) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Storage& s = *reinterpret_cast<Storage*>(memory);
  const int t = threadIdx.x;
  if (t == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      barrier_init(&s.full[stage], 1);
      barrier_init(&s.split[stage], SPLITTERS);
      barrier_init(&s.empty[stage], CONSUMERS * 4);  // a lane of every warp
    }
    barrier_init_done();
  }
  __syncthreads();
  if (t < WARPGROUP) {
    keep_registers<24>();
    if (t == 0) produce(s, &A, &B, w);
    if (t >= 32) split_tiles(s, w);
  } else {
    take_registers<240>();
    consume(s, C, w, (t / WARPGROUP - 1) * ROWS);
  }
}

// Lines of `k` numbers, a multiple of 4.
inline void launch_product(const float* A, const float* B, float* C, int m, int n, int k) {
  const Work w{m, n, k, (m + BM - 1) / BM, (n + BN - 1) / BN};
  int sms = 0;
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
  const int blocks = w.tiles_m * w.tiles_n < sms ? w.tiles_m * w.tiles_n : sms;
  cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Storage));
  multiply<<<blocks, THREADS, sizeof(Storage)>>>(tensor_map<LINE>(A, m, k, BM),
                                                 tensor_map<LINE>(B, n, k, BN), C, w);
}
