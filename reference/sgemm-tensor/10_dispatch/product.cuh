// C = A * B on tensor cores, where A and B lie split into parts. Blocks stay, and take one tile of
// C after another; a warp loads, two warpgroups multiply (reference/hgemm, rungs 9 to 12).
#pragma once

#include <algorithm>

#include "hopper.cuh"
#include "wgmma.cuh"
#include "workspace.cuh"

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
  const float *of_rows, *of_columns;  // the factors of C: powers of two
  int whole, slices, depth;           // tiles after the first `whole` are cut into slices of K
  float* partial;                     // tiles of the slices' sums, one after the other
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

// What a block computes at a time: a tile of C, or a slice of one.
struct Item {
  int i0, j0;      // first row of A and column of B
  int begin, end;  // along K
  int slice;       // the slice's number, or -1 for a whole tile
};

__device__ Item tile_at(const Work& w, int t, int begin, int end, int slice) {
  const int band = BAND * w.tiles_m, first = t / band * BAND, lines = min(BAND, w.tiles_n - first);
  return {t % band / lines * BM, (first + t % band % lines) * BN, begin, end, slice};
}

// Calls `f(item)` for each of this block's items: whole tiles first.
template <class F>
__device__ void each_item(const Work& w, F f) {
  const int items = w.whole + (w.tiles_m * w.tiles_n - w.whole) * w.slices;
  for (int t = blockIdx.x; t < items; t += gridDim.x) {
    const int slice = t - w.whole, begin = slice % w.slices * w.depth;
    if (slice < 0) f(tile_at(w, t, 0, w.k, -1));
    else f(tile_at(w, w.whole + slice / w.slices, begin, min(begin + w.depth, w.k), slice));
  }
}

// One thread keeps the ring full, across items. Part q of A begins q * m lines on.
template <class S>
__device__ void produce(Storage<S>& s, const CUtensorMap* A, const CUtensorMap* B, const Work& w) {
  Place<S> at;
  each_item(w, [&](const Item& item) {
    for (int p = item.begin; p < item.end; p += S::BK, at.advance()) {
      barrier_wait(&s.empty[at.stage], at.parity ^ 1);
      Barrier* const full = &s.full[at.stage];
      barrier_expect(full, S::PARTS * (BM + BN) * S::LINE);
#pragma unroll
      for (int part = 0; part < S::PARTS; ++part) {
        tma_load(s.a[at.stage][part], A, p, part * w.m + item.i0, full);
        tma_load(s.b[at.stage][part], B, p, part * w.n + item.j0, full);
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
  each_item(w, [&](const Item& item) {
    float sums[2][BM / 2] = {};
    for (int p = item.begin; p < item.end; p += S::BK, at.advance()) {
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
        const int line = first + 64 * half + t % WARPGROUP / 32 * 16 + lane / 4 + e / 2 % 2 * 8;
        const int row = e / 4 * 8 + lane % 4 * 2, j = item.j0 + line, i = item.i0 + row;
        if (item.slice >= 0) {
          float* const column = w.partial + (size_t(item.slice) * BN + line) * BM;
          store_pair(column, row, BM, sums[half][e], sums[half][e + 1]);
          continue;
        }
        if (j >= w.n || i >= w.m) continue;
        const float x = sums[half][e] * w.of_columns[j] * w.of_rows[i];
        const float y = sums[half][e + 1] * w.of_columns[j] * w.of_rows[min(i + 1, w.m - 1)];
        store_pair(C + size_t(j) * w.m, i, w.m, x, y);
      }
  });
}

// C's tiles that were cut: the sums of their slices, always in the same order. A block has a column
// of a tile.
__global__ void __launch_bounds__(BM) add_slices(float* C, const Work w) {
  const int cut = blockIdx.x / BN, line = blockIdx.x % BN;
  const Item item = tile_at(w, w.whole + cut, 0, 0, 0);
  const int i = item.i0 + threadIdx.x, j = item.j0 + line;
  if (i >= w.m || j >= w.n) return;
  float sum = 0;
  for (int q = 0; q < w.slices; ++q)
    sum += w.partial[((size_t(cut) * w.slices + q) * BN + line) * BM + threadIdx.x];
  C[size_t(j) * w.m + i] = sum * w.of_columns[j] * w.of_rows[i];
}

// Lines of `k` elements, a multiple of 16 bytes.
template <class S>
void launch_product(const typename S::T* A, const typename S::T* B, const float* of_rows,
                    const float* of_columns, float* C, int m, int n, int k) {
  int sms = 0;
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
  const auto parts = [](int extent, int part) { return (extent + part - 1) / part; };
  Work w{m, n, k, parts(m, BM), parts(n, BN), of_rows, of_columns};
  const int tiles = w.tiles_m * w.tiles_n, steps = parts(k, S::BK), last = tiles % sms;
  // As many slices as give every multiprocessor one at most, of two steps at least.
  w.depth = last ? std::max(2, parts(steps, sms / last)) : steps;
  w.slices = parts(steps, w.depth);
  w.depth *= S::BK;
  w.whole = w.slices == 1 ? tiles : tiles - last;
  if (w.whole < tiles) w.partial = workspace<float, 1>(size_t(last) * w.slices * BM * BN);
  const int blocks = std::min(sms, w.whole + (tiles - w.whole) * w.slices);
  cudaFuncSetAttribute(multiply<S>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       sizeof(Storage<S>));
  multiply<S><<<blocks, THREADS, sizeof(Storage<S>)>>>(tensor_map<S::LINE>(A, S::PARTS * m, k, BM),
                                                       tensor_map<S::LINE>(B, S::PARTS * n, k, BN),
                                                       C, w);
  if (w.whole < tiles) add_slices<<<last * BN, BM, 0>>>(C, w);
}
