// Rung 25: a kernel for every size, and for every generation of cards.
//
// Changed:  three kernels instead of one. Up to two 64 x 32 tiles for each multiprocessor: operands
//           as they lie, 16 bytes at a time by cp.async, both read along K with LDS.128 (rows lie 4
//           banks apart), and four groups of warps that each take a quarter of every K block. As
//           long as 128 x 64 tiles find a multiprocessor each: rung 24's kernel with four such
//           groups, which add their sums through shared memory. Else rung 24 as it is.
// Why:      512 x 512 is too little to pay for packing; 1024 x 1024 is 128 tiles of 128 x 64, for
//           132 multiprocessors. Each must live on one tile, so its warps share K, not C.
// Tile:     BM = 64, BN = 32, BK = 64, 8 x 4 per thread, 4 groups, 4 stages, 102 KiB; BM = 128,
//           BN = 64, BK = 64, 16 x 8 per thread, 4 groups, 4 stages, 192 KiB; rung 24's.
// Bound:    latency of launch, packing and first tile; from 2048 on instruction issue.
// Command:  grade reference/25_dispatch
#include <cstdint>

#include "gemm.cuh"

namespace {

// --- asynchronous copies and their barriers

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return uint32_t(__cvta_generic_to_shared(pointer));
}

#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void barrier_expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ bool barrier_test(uint32_t barrier, uint32_t parity) {
  uint32_t over;
  asm volatile(
      "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(over) : "r"(barrier), "r"(parity) : "memory");
  return over;
}
__device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity) {
  while (!barrier_test(barrier, parity)) {
  }
}
__device__ __forceinline__ void bulk_copy(uint32_t to, const float* from, uint32_t bytes,
                                          uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
      ::"r"(to), "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}
#endif

// 16 bytes from global to shared memory, of which the first `bytes` are read and the rest are zero.
__device__ __forceinline__ void copy16(float* to, const float* from, int bytes = 16) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(bytes) : "memory");
#else
  *reinterpret_cast<float4*>(to) =
      bytes == 16 ? *reinterpret_cast<const float4*>(from) : make_float4(0, 0, 0, 0);
#endif
}
__device__ __forceinline__ void copy4(float* to, const float* from, int bytes) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(bytes) : "memory");
#else
  *to = bytes ? *from : 0.0f;
#endif
}
__device__ __forceinline__ void copies_end_group() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int N>
__device__ __forceinline__ void copies_wait() {  // until at most N groups are under way
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

// --- packing: [row][p] to [row / LINE][p][row % LINE], zero beyond the edges

constexpr int PACK_K = 32, PACK_THREADS = 256;  // p of one packing block

template <int LINE>
__device__ __forceinline__ void pack_strip(const float* from, float* to, int strip, int rows, int k,
                                           int padded, int flip, float (*tile)[129]) {
  const int row0 = strip * LINE, p0 = blockIdx.x * PACK_K;
  if (k % 4 == 0) {
#pragma unroll
    for (int x = 0; x < LINE * PACK_K / 4 / PACK_THREADS; ++x) {
      const int c = threadIdx.x + x * PACK_THREADS;
      const int q = c % (PACK_K / 4) * 4, r = c / (PACK_K / 4);
      float4 v = make_float4(0, 0, 0, 0);
      if (row0 + r < rows && p0 + q < k)
        v = *reinterpret_cast<const float4*>(from + size_t(row0 + r) * k + p0 + q);
      tile[q][r] = v.x, tile[q + 1][r] = v.y, tile[q + 2][r] = v.z, tile[q + 3][r] = v.w;
    }
  } else {
#pragma unroll
    for (int x = 0; x < LINE * PACK_K / PACK_THREADS; ++x) {
      const int c = threadIdx.x + x * PACK_THREADS, q = c % PACK_K, r = c / PACK_K;
      tile[q][r] = row0 + r < rows && p0 + q < k ? from[size_t(row0 + r) * k + p0 + q] : 0.0f;
    }
  }
  __syncthreads();
  to += (size_t(strip) * padded + p0) * LINE;
#pragma unroll
  for (int x = 0; x < LINE * PACK_K / PACK_THREADS; ++x) {
    const int c = threadIdx.x + x * PACK_THREADS;
    if (p0 + c / LINE < padded) to[c] = tile[c / LINE][c % LINE ^ flip];
  }
}

// Strips of A, then strips of B.
template <int LINE_A, int LINE_B>
__global__ __launch_bounds__(PACK_THREADS) void pack(const float* A, const float* B,
                                                     float* packed_a, float* packed_b,
                                                     int strips_a, int m, int n, int k,
                                                     int padded) {
  __shared__ float tile[PACK_K][129];  // odd: the transposing stores do not collide
  const int strip = blockIdx.y;
  if (strip < strips_a) pack_strip<LINE_A>(A, packed_a, strip, m, k, padded, 1, tile);
  else pack_strip<LINE_B>(B, packed_b, strip - strips_a, n, k, padded, 0, tile);
}

// --- the large kernel: packed operands, 16 x 8 per thread

constexpr int TM = 16, TN = 8;           // of a thread, in quads 16 rows and 32 columns apart
constexpr int LANES_I = 4, LANES_J = 8;  // of a warp, which computes 64 x 64
// Neighbours differ in both: were every lane's quad also that of the next lane, or of the next but
// one, a load would be served in half the time and its results would keep FFMAs off the registers.
__device__ __forceinline__ int lane_i(int lane) { return lane % LANES_I; }
__device__ __forceinline__ int lane_j(int lane) { return lane / LANES_I ^ lane % LANES_I; }
constexpr int BM = 128, WARPS_I = BM / (TM * LANES_I);

// A block computes BM x BN with GROUPS groups of warps; each takes its share of every K block.
template <int BN_, int GROUPS_, int BK_, int STAGES_>
struct Shape {
  static constexpr int BN = BN_, GROUPS = GROUPS_, BK = BK_, STAGES = STAGES_;
  static constexpr int GROUP_WARPS = WARPS_I * (BN / (TN * LANES_J)), WARPS = GROUP_WARPS * GROUPS;
  static constexpr int GROUP_THREADS = 32 * GROUP_WARPS, THREADS = 32 * WARPS;
  static constexpr int BLOCKS = WARPS <= 4 ? 2 : 1;  // of an SM
  static constexpr int A_STAGE = BK * BM, B_STAGE = BK * BN, STAGE = A_STAGE + B_STAGE;  // floats
  static constexpr int SHARED = STAGES * (STAGE * 4 + 16);
  // Blocks under way: with stages to spare, no warp waits for the slowest one.
  static constexpr int AHEAD = STAGES > 3 ? STAGES - 2 : STAGES;
  static_assert(STAGES * STAGE >= (GROUPS - 1) * BM * BN, "the sums of the groups fit");
};

struct Work {
  int m, n, k_blocks, tiles_m, tiles_n;
  int whole;    // the first `whole` tiles are a block each; the others are shared out
  int sharers;  // among so many blocks, in equal runs of K blocks
};

struct Where {
  int i, j;  // tile
};

// Tiles in bands of 11 tile rows: a wave of 264 blocks reads 11 + 24 strips.
__device__ __forceinline__ Where tile_at(int tile, const Work& w) {
  constexpr int BAND = 11;
  const int per = BAND * w.tiles_n, first = tile / per * BAND, rows = min(BAND, w.tiles_m - first);
  return {first + tile % per % rows, tile % per / rows};
}
// The first K block, counted through all shared tiles, of one sharer.
__device__ __forceinline__ int share_begin(int sharer, const Work& w) {
  const long long all = (long long)(w.tiles_m * w.tiles_n - w.whole) * w.k_blocks;
  return int(all * sharer / w.sharers);
}

// Column j (of TN) of thread t's patch, to C.
template <class S>
__device__ __forceinline__ void store_column(float* C, const float (&column)[TM], Where at, int t,
                                             int j, const Work& w) {
  const int lane = t % 32, warp = t / 32;
  const int row0 = at.i * BM + warp % WARPS_I * (TM * LANES_I) + lane_i(lane) * 4;
  const int col = at.j * S::BN + warp / WARPS_I * (TN * LANES_J) + lane_j(lane) * 4 +
                  j / 4 * (4 * LANES_J) + j % 4;
  if (col >= w.n) return;
#pragma unroll
  for (int i = 0; i < TM; i += 4) {
    const int row = row0 + i * LANES_I;
    float* to = C + row + size_t(col) * w.m;
    if (w.m % 4 == 0) {
      if (row < w.m)
        *reinterpret_cast<float4*>(to) =
            make_float4(column[i], column[i + 1], column[i + 2], column[i + 3]);
    } else {
#pragma unroll
      for (int x = 0; x < 4; ++x)
        if (row + x < w.m) to[x] = column[i + x];
    }
  }
}

template <class S>
__global__ __launch_bounds__(S::THREADS, S::BLOCKS) void large(const float* A, const float* B,
                                                               float* C, float* partial, Work w) {
  constexpr int STAGES = S::STAGES, AHEAD = S::AHEAD;
  constexpr int OWN_K = S::BK / S::GROUPS;  // of a group, in every K block
  constexpr int UNROLL = OWN_K > 8 ? OWN_K / 2 : OWN_K;
  static_assert(UNROLL % 2 == 0, "the two fragments take turns");
  extern __shared__ __align__(128) float smem[];
  const int group = threadIdx.x / S::GROUP_THREADS, t = threadIdx.x % S::GROUP_THREADS;
  const int lane = t % 32, warp = t / 32;
  // Byte addresses in shared memory: 32 bits, and opaque, so that they are kept and not made again.
  uint32_t base = shared_address(smem);
  uint32_t own_a = base + 4 * (group * OWN_K * BM + warp % WARPS_I * (TM * LANES_I) +
                               lane_i(lane) * 4);
  uint32_t own_b = base + 4 * (S::A_STAGE + group * OWN_K * S::BN +
                               warp / WARPS_I * (TN * LANES_J) + lane_j(lane) * 4);
  asm volatile("" : "+r"(base), "+r"(own_a), "+r"(own_b));

  // The K blocks of this block of threads, counted through its tiles.
  const bool shares = int(blockIdx.x) >= w.whole;
  const int sharer = blockIdx.x - w.whole;
  int at = shares ? share_begin(sharer, w) : 0;
  const int begin = at, end = shares ? share_begin(sharer + 1, w) : w.k_blocks;

#if __CUDA_ARCH__ >= 900
  const uint32_t full = base + STAGES * S::STAGE * 4, empty = full + 8 * STAGES;
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) {
      barrier_init(full + 8 * s, 1);
      barrier_init(empty + 8 * s, S::WARPS);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  // Orders the copies of K block x of a tile, the number-th of all; waits until the stage is empty.
  auto fill = [&](const float* a_from, const float* b_from, int x, int number) {
    const int s = number % STAGES;
    const uint32_t to = base + s * (S::STAGE * 4), barrier = full + 8 * s;
    barrier_wait(empty + 8 * s, (number / STAGES & 1) ^ 1);  // one never used counts as passed
    barrier_expect(barrier, S::STAGE * 4);
    bulk_copy(to, a_from + size_t(x) * S::A_STAGE, S::A_STAGE * 4, barrier);
    bulk_copy(to + S::A_STAGE * 4, b_from + size_t(x) * S::B_STAGE, S::B_STAGE * 4, barrier);
  };
  uint32_t parity = 0;
#else
  auto fill = [&](const float* a_from, const float* b_from, int x, int number) {
    float* to = smem + number % STAGES * S::STAGE;
#pragma unroll
    for (int c = threadIdx.x * 4; c < S::A_STAGE; c += S::THREADS * 4)
      copy16(to + c, a_from + size_t(x) * S::A_STAGE + c);
#pragma unroll
    for (int c = threadIdx.x * 4; c < S::B_STAGE; c += S::THREADS * 4)
      copy16(to + S::A_STAGE + c, b_from + size_t(x) * S::B_STAGE + c);
  };
#endif

  float acc[TM][TN], a[2][TM], b[2][TN];
  auto load_quad = [](float* to, uint32_t from) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3]) : "r"(from) : "memory");
  };
  // Fragment f from row k of a stage.
  auto load = [&](int f, uint32_t as, uint32_t bs, int k) {
#pragma unroll
    for (int i = 0; i < TM; i += 4) load_quad(&a[f][i], as + 4 * (k * BM + i * LANES_I));
#pragma unroll
    for (int j = 0; j < TN; j += 4) load_quad(&b[f][j], bs + 4 * (k * S::BN + j * LANES_J));
  };
  // One rank-1 update: every step changes one of the two factors, the other is reused. Of the
  // orders of columns, this one leaves the fewest bank conflicts in the machine code.
  auto update = [&](int f) {
#pragma unroll
    for (int y = 0; y < TN; ++y)
#pragma unroll
      for (int x = 0; x < TM; ++x) {
        const int i = y % 2 ? x : TM - 1 - x, j = y < TN / 2 ? TN - 1 - y : y - TN / 2;
        acc[i][j] += a[f][i ^ 1] * b[f][j];
      }
  };

  // Vector stores want aligned quads of registers; an addition keeps that out of the loop.
  auto sum = [&](int i, int j) { return acc[i][j] + 0.0f; };

  int number = 0;  // of the K blocks that went before, in all tiles
  uint32_t offset = 0;  // bytes, of the stage being read
  while (at < end) {
    const int tile = shares ? w.whole + at / w.k_blocks : int(blockIdx.x);
    const int k0 = at % w.k_blocks, count = min(end - at, w.k_blocks - k0);
    const Where where = tile_at(tile, w);
    const float* a_from = A + (size_t(where.i) * w.k_blocks + k0) * S::A_STAGE;
    const float* b_from = B + (size_t(where.j) * w.k_blocks + k0) * S::B_STAGE;
    __syncthreads();  // the barriers are there; nobody looks at an old stage any more
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0)
      for (int x = 0; x < AHEAD && x < count; ++x) fill(a_from, b_from, x, number + x);
    // The warps take turns in ordering the copies of the blocks that follow.
    int turn = threadIdx.x % 32 == 0 ? int(threadIdx.x) / 32 : 1 << 30;
    int filled = AHEAD + turn;
#else
#pragma unroll
    for (int x = 0; x < AHEAD; ++x) {
      if (x < count) fill(a_from, b_from, x, number + x);
      copies_end_group();
    }
#endif
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
      for (int j = 0; j < TN; ++j) acc[i][j] = 0.0f;

#if __CUDA_ARCH__ >= 900
    barrier_wait(full + (offset / (S::STAGE * 4)) * 8, parity);
#else
    copies_wait<AHEAD - 1>();
    __syncthreads();
#endif
    uint32_t as = own_a + offset, bs = own_b + offset, barrier = offset / (S::STAGE * 4) * 8;
    load(0, as, bs, 0);
    // In parts of UNROLL values of k: no more than the instruction cache serves.
    for (int it = 0, part = 0;;) {
#pragma unroll
      for (int k = 0; k + 1 < UNROLL; ++k) {
        load((k + 1) % 2, as, bs, k + 1);
        update(k % 2);
      }
      as += 4 * UNROLL * BM, bs += 4 * UNROLL * S::BN;
      if (UNROLL == OWN_K || (part ^= 1) == 0) {  // the stage is read; on to the next
#if __CUDA_ARCH__ >= 900
        __syncwarp();
        if (lane == 0) barrier_arrive(empty + barrier);
#endif
        offset += S::STAGE * 4;
        barrier += 8;
        if (barrier == 8 * STAGES) {
          offset = barrier = 0;
#if __CUDA_ARCH__ >= 900
          parity ^= 1;
#endif
        }
        if (++it == count) break;
#if __CUDA_ARCH__ >= 900
        if (turn-- == 0) {
          turn = S::WARPS - 1;
          if (filled < count) fill(a_from, b_from, filled, number + filled);
          filled += S::WARPS;
        }
        barrier_wait(full + barrier, parity);
#else
        copies_wait<AHEAD - 2>();
        __syncthreads();
        if (it + AHEAD - 1 < count) fill(a_from, b_from, it + AHEAD - 1, number + it + AHEAD - 1);
        copies_end_group();
#endif
        as = own_a + offset, bs = own_b + offset;
      }
      load(0, as, bs, 0);
      update(1);
    }
    update(1);
    number += count;

    if constexpr (S::GROUPS > 1) {
      // Every group adds up its share of the columns; the others' parts come through shared memory.
      constexpr int OWN_J = TN / S::GROUPS;
      __syncthreads();
#pragma unroll
      for (int j = 0; j < TN; ++j)
        if (j / OWN_J != group) {
          const int slot = group - (group > j / OWN_J);
#pragma unroll
          for (int i = 0; i < TM; i += 4)
            *reinterpret_cast<float4*>(
                smem + ((slot * TN + j) * TM + i) * S::GROUP_THREADS + t * 4) =
                make_float4(sum(i, j), sum(i + 1, j), sum(i + 2, j), sum(i + 3, j));
        }
      __syncthreads();
#pragma unroll
      for (int j = 0; j < TN; ++j)
        if (j / OWN_J == group) {
          float column[TM];
#pragma unroll
          for (int i = 0; i < TM; ++i) column[i] = sum(i, j);
#pragma unroll
          for (int slot = 0; slot < S::GROUPS - 1; ++slot)
#pragma unroll
            for (int i = 0; i < TM; i += 4) {
              const float4 v = *reinterpret_cast<const float4*>(
                  smem + ((slot * TN + j) * TM + i) * S::GROUP_THREADS + t * 4);
              column[i] += v.x, column[i + 1] += v.y, column[i + 2] += v.z, column[i + 3] += v.w;
            }
          store_column<S>(C, column, where, t, j, w);
        }
    } else if (count == w.k_blocks) {
#pragma unroll
      for (int j = 0; j < TN; ++j) {
        float column[TM];
#pragma unroll
        for (int i = 0; i < TM; ++i) column[i] = sum(i, j);
        store_column<S>(C, column, where, t, j, w);
      }
    } else {
      // A sharer leaves at most two parts of tiles: of its first and of its last one.
      float* to = partial + size_t(2 * sharer + (at != begin)) * (BM * S::BN);
#pragma unroll
      for (int j = 0; j < TN; ++j)
#pragma unroll
        for (int i = 0; i < TM; i += 4)
          *reinterpret_cast<float4*>(to + (j * TM + i) * S::THREADS + t * 4) =
              make_float4(sum(i, j), sum(i + 1, j), sum(i + 2, j), sum(i + 3, j));
    }
    at += count;
  }
}

// Adds the parts of the shared tiles, always in the order of K. Block (tile, j).
template <class S>
__global__ __launch_bounds__(S::THREADS) void add_parts(const float* partial, float* C, Work w) {
  const int from = blockIdx.x * w.k_blocks, to = from + w.k_blocks, j = blockIdx.y;
  const long long all = (long long)(w.tiles_m * w.tiles_n - w.whole) * w.k_blocks;
  int sharer = int((long long)from * w.sharers / all);
  while (share_begin(sharer + 1, w) <= from) ++sharer;
  float column[TM] = {};
  for (; sharer < w.sharers && share_begin(sharer, w) < to; ++sharer) {
    const int begin = share_begin(sharer, w), end = share_begin(sharer + 1, w);
    if (begin == end) continue;
    if (begin <= from && end >= to) return;  // one sharer had the whole tile
    const float* part = partial + size_t(2 * sharer + (begin < from)) * (BM * S::BN);
#pragma unroll
    for (int i = 0; i < TM; i += 4) {
      const float4 v =
          *reinterpret_cast<const float4*>(part + (j * TM + i) * S::THREADS + threadIdx.x * 4);
      column[i] += v.x, column[i + 1] += v.y, column[i + 2] += v.z, column[i + 3] += v.w;
    }
  }
  store_column<S>(C, column, tile_at(w.whole + blockIdx.x, w), threadIdx.x, j, w);
}

// --- the small kernel: operands as they lie, K split among groups of warps within the block

template <int BM, int BN, int BK, int SM, int SN, int GROUPS, int STAGES, int BLOCKS>
struct Small {
  static constexpr int GROUP_THREADS = (BM / SM) * (BN / SN), THREADS = GROUP_THREADS * GROUPS;
  static constexpr int PITCH = BK + 4;  // eight rows apart by 4 banks: LDS.128 without conflicts
  static constexpr int STAGE = (BM + BN) * PITCH;
  static constexpr int SHARED = STAGES * STAGE * 4;
  static_assert(GROUP_THREADS % 32 == 0 && BK % (4 * GROUPS) == 0, "");
  static_assert(STAGES * STAGE >= (GROUPS - 1) * BM * BN, "the sums of the groups fit");
};

template <int BM, int BN, int BK, int SM, int SN, int GROUPS, int STAGES, int BLOCKS, bool WIDE>
__global__ __launch_bounds__(Small<BM, BN, BK, SM, SN, GROUPS, STAGES, BLOCKS>::THREADS, BLOCKS)
void small(const float* A, const float* B, float* C, int m, int n, int k) {
  using S = Small<BM, BN, BK, SM, SN, GROUPS, STAGES, BLOCKS>;
  extern __shared__ __align__(128) float smem[];
  const int row0 = blockIdx.x * BM, col0 = blockIdx.y * BN;
  const int group = threadIdx.x / S::GROUP_THREADS, t = threadIdx.x % S::GROUP_THREADS;
  // A warp is 8 x 4 threads; a thread's rows are 8 apart within the warp's, its columns 4 apart.
  constexpr int WI = BM / (8 * SM);
  const int lane = t % 32, warp = t / 32;
  const int i0 = warp % WI * (8 * SM) + lane % 8, j0 = warp / WI * (4 * SN) + lane / 8;

  // A thread copies one quad of p of every LINES-th line. Rows beyond the edge repeat the last.
  constexpr int QUADS = BK / 4, LINES = S::THREADS / QUADS, COPIES = (BM + BN) / LINES;
  static_assert(S::THREADS % QUADS == 0 && BM % LINES == 0 && BN % LINES == 0, "");
  const int q = threadIdx.x % QUADS * 4, line = threadIdx.x / QUADS;
  int from[COPIES];  // in elements: an operand of the lab has at most 2^26
#pragma unroll
  for (int x = 0; x < COPIES; ++x) {
    const int l = line + x * LINES;
    from[x] = (x * LINES < BM ? min(row0 + l, m - 1) : min(col0 + l - BM, n - 1)) * k + q;
  }
  auto fill = [&](int stage, int p0) {
    float* to = smem + stage * S::STAGE + line * S::PITCH + q;
#pragma unroll
    for (int x = 0; x < COPIES; ++x) {
      const float* operand = x * LINES < BM ? A : B;
      if (WIDE) {
        const bool there = p0 + q < k;
        copy16(to + x * LINES * S::PITCH, operand + (there ? from[x] + p0 : 0), there ? 16 : 0);
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const bool there = p0 + q + e < k;
          copy4(to + x * LINES * S::PITCH + e, operand + (there ? from[x] + p0 + e : 0),
                there ? 4 : 0);
        }
      }
    }
  };

  const int steps = (k + BK - 1) / BK;
#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) {
    if (s < steps) fill(s, s * BK);
    copies_end_group();
  }
  float acc[SM][SN] = {};
  for (int it = 0; it < steps; ++it) {
    copies_wait<STAGES - 2>();
    __syncthreads();
    if (it + STAGES - 1 < steps) fill((it + STAGES - 1) % STAGES, (it + STAGES - 1) * BK);
    copies_end_group();
    const float* as = smem + it % STAGES * S::STAGE + i0 * S::PITCH + group * (BK / GROUPS);
    const float* bs = smem + it % STAGES * S::STAGE + (BM + j0) * S::PITCH + group * (BK / GROUPS);
#pragma unroll
    for (int p = 0; p < BK / GROUPS; p += 4) {
      float4 a[SM];
#pragma unroll
      for (int i = 0; i < SM; ++i)
        a[i] = *reinterpret_cast<const float4*>(as + i * 8 * S::PITCH + p);
#pragma unroll
      for (int j = 0; j < SN; ++j) {
        const float4 b = *reinterpret_cast<const float4*>(bs + j * 4 * S::PITCH + p);
#pragma unroll
        for (int i = 0; i < SM; ++i) acc[i][j] += a[i].x * b.x;
#pragma unroll
        for (int i = 0; i < SM; ++i) acc[i][j] += a[i].y * b.y;
#pragma unroll
        for (int i = 0; i < SM; ++i) acc[i][j] += a[i].z * b.z;
#pragma unroll
        for (int i = 0; i < SM; ++i) acc[i][j] += a[i].w * b.w;
      }
    }
  }

  // The sums of groups 1, 2, … go through shared memory to group 0.
  copies_wait<0>();
  __syncthreads();
  constexpr int PATCH = SM * SN;
  if (group > 0) {
#pragma unroll
    for (int x = 0; x < PATCH; ++x)
      smem[((group - 1) * PATCH + x) * S::GROUP_THREADS + t] = acc[x / SN][x % SN];
  }
  __syncthreads();
  if (group > 0) return;
#pragma unroll
  for (int g = 0; g < GROUPS - 1; ++g)
#pragma unroll
    for (int x = 0; x < PATCH; ++x)
      acc[x / SN][x % SN] += smem[(g * PATCH + x) * S::GROUP_THREADS + t];
#pragma unroll
  for (int j = 0; j < SN; ++j) {
    const int col = col0 + j0 + 4 * j;
    if (col >= n) continue;
#pragma unroll
    for (int i = 0; i < SM; ++i) {
      const int row = row0 + i0 + 8 * i;
      if (row < m) C[row + size_t(col) * m] = acc[i][j];
    }
  }
}

// --- host

int ceil_div(int a, int b) { return (a + b - 1) / b; }

int attribute(cudaDeviceAttr which) {
  int value = 0;
  cudaDeviceGetAttribute(&value, which, 0);
  return value;
}

template <int BM, int BN, int BK, int SM, int SN, int GROUPS, int STAGES, int BLOCKS>
void launch_small(const float* A, const float* B, float* C, int m, int n, int k) {
  using S = Small<BM, BN, BK, SM, SN, GROUPS, STAGES, BLOCKS>;
  auto kernel = k % 4 == 0 ? small<BM, BN, BK, SM, SN, GROUPS, STAGES, BLOCKS, true>
                           : small<BM, BN, BK, SM, SN, GROUPS, STAGES, BLOCKS, false>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::SHARED);
  const dim3 grid(ceil_div(m, BM), ceil_div(n, BN));
  kernel<<<grid, S::THREADS, S::SHARED>>>(A, B, C, m, n, k);
}

template <class S>
void launch_large(const float* A, const float* B, float* C, int m, int n, int k, int sms) {
  const int padded = ceil_div(k, S::BK) * S::BK, slots = S::BLOCKS * sms;
  Work w = {m, n, padded / S::BK, ceil_div(m, BM), ceil_div(n, S::BN), 0, 0};
  const int tiles = w.tiles_m * w.tiles_n, left = tiles % slots;
  // The last, partial wave is shared out where that saves more than the parts cost.
  const bool share =
      S::GROUPS == 1 && left > 0 && (long long)(slots - left) * k > 256LL * slots;
  w.whole = share ? tiles - left : tiles;
  w.sharers = share ? min(slots, left * w.k_blocks) : 0;

  const size_t a_floats = size_t(w.tiles_m) * BM * padded;
  const size_t b_floats = size_t(w.tiles_n) * S::BN * padded;
  const size_t part_floats = size_t(2 * w.sharers) * BM * S::BN;
  float* workspace = nullptr;
  cudaMalloc(&workspace, (a_floats + b_floats + part_floats) * sizeof(float));
  float *packed_a = workspace, *packed_b = packed_a + a_floats, *partial = packed_b + b_floats;

  const dim3 strips(ceil_div(padded, PACK_K), w.tiles_m + w.tiles_n);
  pack<BM, S::BN><<<strips, PACK_THREADS>>>(A, B, packed_a, packed_b, w.tiles_m, m, n, k, padded);
  cudaFuncSetAttribute(large<S>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::SHARED);
  large<S><<<w.whole + w.sharers, S::THREADS, S::SHARED>>>(packed_a, packed_b, C, partial, w);
  if (share) add_parts<S><<<dim3(left, TN), S::THREADS>>>(partial, C, w);
  cudaFree(workspace);
}

}  // namespace

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  const float *A = d_A.data().get(), *B = d_B.data().get();
  float* C = d_C.data().get();
  const int sms = attribute(cudaDevAttrMultiProcessorCount);
  const int shared = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  const bool bulk = attribute(cudaDevAttrComputeCapabilityMajor) >= 9;
  using Grouped = Shape<64, 4, 64, 4>;
  if (k < 64 || ceil_div(m, 64) * ceil_div(n, 32) <= 2 * sms) {
    if (shared >= Small<64, 32, 64, 8, 4, 4, 4, 1>::SHARED)
      launch_small<64, 32, 64, 8, 4, 4, 4, 1>(A, B, C, m, n, k);
    else
      launch_small<64, 32, 64, 8, 4, 4, 2, 1>(A, B, C, m, n, k);
  } else if (!bulk) {
    launch_large<Shape<128, 1, 16, 2>>(A, B, C, m, n, k, sms);
  } else if (shared >= Grouped::SHARED && ceil_div(m, BM) * ceil_div(n, Grouped::BN) <= sms) {
    launch_large<Grouped>(A, B, C, m, n, k, sms);
  } else {
    launch_large<Shape<128, 1, 24, 4>>(A, B, C, m, n, k, sms);
  }
}
