// The small kernel: operands as they lie, K split among groups of warps within the block, and in
// slices among blocks.
#pragma once

#include "narrow_copy.cuh"
#include "slices.cuh"

#include <type_traits>

__device__ __forceinline__ void load_shared(float* to, const float* from) {
  const float4 v = *reinterpret_cast<const float4*>(from);
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

template <int BM, int BN, int BK, int SM, int SN, int GROUPS, int STAGES, int BLOCKS>
struct Small {
  static constexpr int GROUP_THREADS = (BM / SM) * (BN / SN), THREADS = GROUP_THREADS * GROUPS;
  static constexpr int PITCH = BK + 4;  // eight rows apart by 4 banks: LDS.128 without conflicts
  static constexpr int STAGE = (BM + BN) * PITCH;
  // Of sums at the end, column by column or, where C is turned, row by row: 8 x 4 lanes without
  // conflicts.
  static constexpr int SUM_PITCH = (BM + 23) / 32 * 32 + 8, TURNED_PITCH = (BN + 27) / 32 * 32 + 4;
  static constexpr int larger(int x, int y) { return x > y ? x : y; }
  static constexpr int SUMS = larger(SUM_PITCH * BN, TURNED_PITCH * BM);
  static constexpr int SHARED = 4 * larger(STAGES * STAGE, GROUPS * SUMS);
  static_assert(GROUP_THREADS % 32 == 0 && BK % (4 * GROUPS) == 0, "");
  static_assert(BM % (8 * SM) == 0 && BN % (4 * SN) == 0, "");

  // A warp is 8 x 4 threads; a thread's rows are 8 apart within the warp's, its columns 4 apart.
  // A lane reads the row of A that lane ^ 1 reads too, and the column of B that lane ^ 2 reads:
  // loads of 16 bytes take half the wavefronts then.
  static constexpr int WARPS_M = BM / (8 * SM);
  __device__ __forceinline__ static int row(int t) {
    return t / 32 % WARPS_M * (8 * SM) + t / 8 % 4 * 2 + t / 2 % 2;
  }
  __device__ __forceinline__ static int col(int t) {
    return t / 32 / WARPS_M * (4 * SN) + t / 4 % 2 * 2 + t % 2;
  }
  // Every other of a thread's columns lies in shared memory with its values of p swapped in pairs:
  // registers of one p are of the even and of the odd bank by turns then, as FFMA wants them.
  static constexpr bool SWAPS = SM * SN >= 36;
  __device__ __forceinline__ static bool is_swapped(int col) { return SWAPS && col / 4 % SN % 2; }
};

// sm_75 copies through registers, and would have too few for so many blocks.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define BLOCKS_HERE(blocks) 1
#else
#define BLOCKS_HERE(blocks) (blocks)
#endif

// Adds the groups' sums. A warp stores parts of a line of C, which has `length` values.
template <int LINES, int WIDTH, int PITCH, int SUMS, int GROUPS, int THREADS>
__device__ __forceinline__ void store_sums(const float* sums, float* C, int line0, int first,
                                           int lines, int length) {
  C += size_t(line0) * length + first;
  for (int line = threadIdx.x / 32; line < min(LINES, lines - line0); line += THREADS / 32)
#pragma unroll
    for (int x = threadIdx.x % 32; x < WIDTH; x += 32) {
      float sum = 0;
#pragma unroll
      for (int g = 0; g < GROUPS; ++g) sum += sums[g * SUMS + line * PITCH + x];
      if (x < length - first) C[size_t(line) * length + x] = sum;
    }
}

template <int BM, int BN, int BK, int SM, int SN, int GROUPS, int STAGES, int BLOCKS, int WIDTH>
__global__ __launch_bounds__(Small<BM, BN, BK, SM, SN, GROUPS, STAGES, BLOCKS>::THREADS,
                            BLOCKS_HERE(BLOCKS))
void small(const float* A, const float* B, float* C, int m, int n, int k, int depth,
           bool turned, bool across) {
  using S = Small<BM, BN, BK, SM, SN, GROUPS, STAGES, BLOCKS>;
  extern __shared__ __align__(128) float smem[];
  let_next_launch_begin();
  const int row0 = (across ? blockIdx.y : blockIdx.x) * BM;
  const int col0 = (across ? blockIdx.x : blockIdx.y) * BN;
  const int first = blockIdx.z * depth;
  C += size_t(blockIdx.z) * m * n;
  const int group = threadIdx.x / S::GROUP_THREADS, t = threadIdx.x % S::GROUP_THREADS;
  const int i0 = S::row(t), j0 = S::col(t);

  // A thread copies WIDTH neighbouring values of p, as lines are aligned, of every LINES-th line.
  // Of swapped lines, and where WIDTH is 1, values COLUMNS apart: a warp copies neighbours.
  constexpr int COLUMNS = WIDTH == 4 ? BK / 4 : 32, LINES = S::THREADS / COLUMNS;
  constexpr int COPIES = (BM + BN + LINES - 1) / LINES;
  static_assert(S::THREADS % COLUMNS == 0 && BM % 8 == 0 && BN % 8 == 0 && BK % COLUMNS == 0, "");
  static_assert(LINES % 4 == 0 && BM % LINES % 4 == 0, "");
  const int q = threadIdx.x % COLUMNS, line = threadIdx.x / COLUMNS;
  // The x-th line that this thread copies; of swapped ones every warp has its part.
  auto line_at = [&](int x) {
    return (WIDTH == 4 && LINES % 8 == 0 ? line ^ x % 2 * 4 : line) + x * LINES;
  };
  auto is_a = [&](int x) {
    return (x + 1) * LINES <= BM || (x * LINES < BM && line_at(x) < BM);
  };
  auto is_wide = [&](int x) {
    return WIDTH > 1 && BK == WIDTH * COLUMNS && (is_a(x) || !S::is_swapped(line_at(x) - BM));
  };
  // Bytes from an operand to this thread's place in its x-th line; an operand has less than 2^30
  // elements. Where WIDTH is not 4 there are too many: it is the place in the first line of a tile.
  uint32_t from[WIDTH == 4 ? COPIES : 1];
  if constexpr (WIDTH == 4) {
#pragma unroll
    for (int x = 0; x < COPIES; ++x) {
      const int l = line_at(x);
      from[x] = 4 * (uint32_t(is_a(x) ? row0 + l : col0 + l - BM) * k + first +
                     (is_wide(x) ? 4 * q : q));
      asm volatile("" : "+r"(from[x]));  // not to be computed again
    }
  } else {
    static_assert(BM % LINES == 0, "");
    A += size_t(row0) * k, B += size_t(col0) * k;
    from[0] = 4 * (uint32_t(line) * k + first + q);
  }
  uint32_t to[2];  // of even and odd x, in stage 0
#pragma unroll
  for (int x = 0; x < 2; ++x) {
    to[x] = shared_address(smem) + 4 * (line_at(x) - x * LINES) * S::PITCH;
    asm volatile("" : "+r"(to[x]));
  }
  const int len = min(depth, k - first);
  const bool inside = WIDTH != 4 || (m - row0 >= BM && n - col0 >= BN);
  // Of a whole K block inside the matrices, or of another.
  auto copy = [&](uint32_t stage, const char* a, const char* b, int left, auto is_whole) {
    constexpr bool whole = decltype(is_whole)::value;
    const char* next = a + from[0];
#pragma unroll
    for (int x = 0; x < COPIES; ++x) {
      if ((x + 1) * LINES > BM + BN && line_at(x) >= BM + BN) break;
      const char* place = (is_a(x) ? a : b) + from[WIDTH == 4 ? x : 0];
      // Lines beyond the edge are zero. Copies that repeat the last are up to twice as slow: in all
      // blocks along the edge they want the same bytes of the L2.
      bool is_there = true;
      if (WIDTH != 4 || !whole) is_there = line_at(x) < (is_a(x) ? m - row0 : n - col0 + BM);
      if (WIDTH != 4) {
        if (x * LINES == BM) next = b + from[0];
        place = next + (is_wide(x) ? 4 * q : 0);
        next += size_t(4 * LINES) * k;
        asm volatile("" : "+l"(next));  // one pointer, not one for each line
      }
      const uint32_t line_to = to[x % 2] + stage + 4 * x * LINES * S::PITCH;
      if (is_wide(x)) {
        constexpr int BYTES = 4 * WIDTH;
        const int bytes = (whole || WIDTH * q < left) && is_there ? BYTES : 0;
        copy_async<BYTES, 256>(line_to + BYTES * q, bytes ? place : a, bytes);
      } else {
        const bool swapped = !is_a(x) && S::is_swapped(line_at(x) - BM);
        const uint32_t value_to = line_to + 4 * (q ^ int(swapped));
#pragma unroll
        for (int p = 0; p < BK; p += COLUMNS) {
          const int bytes = (whole || p + q < left) && is_there ? 4 : 0;
          copy_async<4, 256>(value_to + 4 * p, bytes ? place + 4 * p : a, bytes);
        }
      }
    }
  };
  auto fill = [&](int stage, int p0) {
    const uint32_t at = stage * S::STAGE * 4;
    const char *a = reinterpret_cast<const char*>(A + p0);
    const char *b = reinterpret_cast<const char*>(B + p0);
    if (__builtin_expect(inside && len - p0 >= BK, 1)) copy(at, a, b, BK, std::true_type());
    else copy(at, a, b, len - p0, std::false_type());
  };

  const int steps = (len + BK - 1) / BK;
#pragma unroll 1
  for (int s = 0; s < STAGES - 1; ++s) {
    if (s < steps) fill(s, s * BK);
    commit_group();
  }
  float acc[SM][SN] = {};
  for (int it = 0; it < steps; ++it) {
    wait_group<STAGES - 2>();
    __syncthreads();
    if (it + STAGES - 1 < steps) fill((it + STAGES - 1) % STAGES, (it + STAGES - 1) * BK);
    commit_group();
    const float* stage = smem + it % STAGES * S::STAGE + group * (BK / GROUPS);
    const float *as = stage + i0 * S::PITCH, *bs = stage + (BM + j0) * S::PITCH;
    // Not unrolled where lines are swapped: ptxas would reorder the FFMAs.
#pragma unroll S::SWAPS ? 1 : BK / GROUPS / 4
    for (int p = 0; p < BK / GROUPS; p += 4, as += 4, bs += 4) {
      float b[SN][4];
#pragma unroll
      for (int j = 0; j < SN; ++j) load_shared(b[j], bs + j * 4 * S::PITCH);
      float a[2][4];
      load_shared(a[0], as);
#pragma unroll
      for (int i = 0; i < SM; ++i) {
        if (i + 1 < SM) load_shared(a[(i + 1) % 2], as + (i + 1) * 8 * S::PITCH);
#pragma unroll
        for (int c = 0; c < 4; ++c)
#pragma unroll
          for (int x = 0; x < SN; ++x) {
            const int j = c % 2 ? x : SN - 1 - x;
            acc[i][j] += a[i % 2][c] * b[j][S::SWAPS ? c ^ j % 2 : c];
          }
      }
    }
  }

  // The groups' sums go through shared memory, so that a warp stores neighbours in C.
  wait_group<0>();
  __syncthreads();
  const int row_pitch = turned ? S::TURNED_PITCH : 1, col_pitch = turned ? 1 : S::SUM_PITCH;
  float* own = smem + group * S::SUMS + i0 * row_pitch + j0 * col_pitch;
#pragma unroll
  for (int i = 0; i < SM; ++i)
#pragma unroll
    for (int j = 0; j < SN; ++j) own[i * 8 * row_pitch + j * 4 * col_pitch] = acc[i][j];
  __syncthreads();
  if (turned)
    store_sums<BM, BN, S::TURNED_PITCH, S::SUMS, GROUPS, S::THREADS>(smem, C, row0, col0, m, n);
  else
    store_sums<BN, BM, S::SUM_PITCH, S::SUMS, GROUPS, S::THREADS>(smem, C, col0, row0, n, m);
}

template <int BM, int BN, int BK, int SM, int SN, int GROUPS, int STAGES, int BLOCKS>
void launch_small(const float* A, const float* B, float* C, int m, int n, int k, int slices,
                  bool turned = false) {
  using S = Small<BM, BN, BK, SM, SN, GROUPS, STAGES, BLOCKS>;
  auto kernel = k % 4 == 0   ? small<BM, BN, BK, SM, SN, GROUPS, STAGES, BLOCKS, 4>
                : k % 2 == 0 ? small<BM, BN, BK, SM, SN, GROUPS, STAGES, BLOCKS, 2>
                             : small<BM, BN, BK, SM, SN, GROUPS, STAGES, BLOCKS, 1>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::SHARED);
  const int depth = ceil_div(ceil_div(k, slices), BK) * BK;
  slices = ceil_div(k, depth);
  const size_t count = size_t(m) * n;
  float* to = slices > 1 ? workspace(count * slices) : C;
  // The longer side in x, as y ends at 65535; the order makes no difference to the times.
  const int tiles_m = ceil_div(m, BM), tiles_n = ceil_div(n, BN);
  const bool across = tiles_n > tiles_m;
  const dim3 grid = across ? dim3(tiles_n, tiles_m, slices) : dim3(tiles_m, tiles_n, slices);
  kernel<<<grid, S::THREADS, S::SHARED>>>(A, B, to, m, n, k, depth, turned, across);
  if (slices > 1) add_up(to, C, count, slices);
}
