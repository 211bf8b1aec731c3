// Light blocks with brief K blocks: 8 or 16 values of k, two or four warps. A multiprocessor holds
// three to twelve of them, which work while others wait, and little of a short K is padding. Sums
// go from registers to C. Where there are too few tiles for the GPU, K is sliced.
#pragma once

#include "small.cuh"

// A warp is 8 x 4 lanes of TM x TN sums. BK lanes copy neighbours along K.
template <int TM_, int TN_, int WARPS_M_, int WARPS_N_, int BK_, int STAGES_, int BLOCKS_>
struct Brief {
  static constexpr int TM = TM_, TN = TN_, WARPS_M = WARPS_M_, WARPS_N = WARPS_N_;
  static constexpr int BK = BK_, STAGES = STAGES_, BLOCKS = BLOCKS_;
  static constexpr int THREADS = 32 * WARPS_M * WARPS_N, WM = 8 * TM, WN = 4 * TN;
  static constexpr int BM = WM * WARPS_M, BN = WN * WARPS_N;
  // A warp's 32 copies go to 32 banks. For four lines and eight values of k the pitch is enough;
  // for two and sixteen odd values of k lie eight rows later, with lines swapped in pairs of two.
  static constexpr int A_PITCH = BM + 4, B_PITCH = BN + 4;  // floats
  static constexpr int row(int k) { return BK == 8 ? k : k / 2 + k % 2 * 8; }
  static constexpr int swap(int k) { return BK == 8 ? 0 : k % 2 * 2; }
  static constexpr int A_STAGE = BK * A_PITCH, STAGE = 4 * (A_STAGE + BK * B_PITCH);  // bytes
  static constexpr int SHARED = STAGES * STAGE;
  static constexpr int LINES = THREADS / BK;  // that the block copies at a time
  static constexpr int A_COPIES = BM / LINES, COPIES = A_COPIES + BN / LINES;
  static_assert(BM % LINES == 0 && BN % LINES == 0 && (BK == 8 || BK == 16), "all copy alike");
  static_assert(TM % 4 == 0 && TN % 4 == 0, "");

  // Of 32 rows of A four that lie side by side are eight apart: a warp's store has whole sectors.
  static constexpr int line(int place) { return place / 32 * 32 + place % 4 * 8 + place % 32 / 4; }
};

template <class S>
__global__ __launch_bounds__(S::THREADS, BLOCKS_HERE(S::BLOCKS)) void brief(const float* A,
                                                                           const float* B, float* C,
                                                                           int m, int n, int k,
                                                                           int depth) {
  extern __shared__ __align__(128) float smem[];
  let_next_launch_begin();
  const int row0 = blockIdx.x * S::BM, col0 = blockIdx.y * S::BN;
  // Where a slice is no multiple of BK, its first K block begins before it: zeros are there.
  const int own = threadIdx.x % S::BK, first = threadIdx.x / S::BK;
  const int begin = blockIdx.z * depth, len = min(depth, k - begin);
  C += size_t(blockIdx.z) * m * n;
  const int steps = (len + S::BK - 1) / S::BK;
  int at = len - steps * S::BK;
  const char* a_from = reinterpret_cast<const char*>(A + size_t(row0) * k + begin + at);
  const char* b_from = reinterpret_cast<const char*>(B + size_t(col0) * k + begin + at);
  at += own;
  uint32_t line[S::COPIES];  // bytes from there to this thread's value of its lines
#pragma unroll
  for (int x = 0; x < S::COPIES; ++x) {  // lines past the edge repeat the last
    const bool of_a = x < S::A_COPIES;
    const int place = first + (of_a ? x : x - S::A_COPIES) * S::LINES;
    const int l = of_a ? S::line(place) : place;
    line[x] = 4 * (uint32_t(min(l, of_a ? m - 1 - row0 : n - 1 - col0)) * k + own);
    asm volatile("" : "+r"(line[x]));  // not to be computed again
  }
  const uint32_t base = shared_address(smem);
  uint32_t a_to = base + 4 * (S::row(own) * S::A_PITCH + (first ^ S::swap(own)));
  uint32_t b_to = base + 4 * (S::A_STAGE + S::row(own) * S::B_PITCH + (first ^ S::swap(own)));
  asm volatile("" : "+r"(a_to), "+r"(b_to));
  uint32_t write = 0, read = 0;  // offsets of stages
  auto next = [](uint32_t stage) {
    return stage + S::STAGE == S::SHARED ? 0 : stage + S::STAGE;
  };
  auto copy = [&](auto checked) {
    const int bytes = !decltype(checked)::value || at >= 0 ? 4 : 0;
#pragma unroll
    for (int x = 0; x < S::COPIES; ++x) {
      const bool of_a = x < S::A_COPIES;
      const uint32_t to = (of_a ? a_to : b_to) + 4 * (of_a ? x : x - S::A_COPIES) * S::LINES;
      copy_async<4, 128>(to + write, (of_a ? a_from : b_from) + line[x], bytes);
    }
    a_from += 4 * S::BK, b_from += 4 * S::BK, at += S::BK;
    write = next(write);
  };

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // Pairs of lanes share their quads of B, others those of A: a load takes two wavefronts. With
  // many sums neighbours differ in both: rung 29 says why.
  constexpr bool PAIRS = S::TM * S::TN <= 64;
  const int lane_row = PAIRS ? lane / 8 * 2 + lane % 2 : lane / 4 ^ lane % 4;
  const int lane_col = PAIRS ? lane / 2 % 4 : lane % 4;
  const int row = warp % S::WARPS_M * S::WM, col = warp / S::WARPS_M * S::WN + 4 * lane_col;
  const uint32_t as = base + 4 * (row + 4 * lane_row), bs = base + 4 * (S::A_STAGE + col);
  float acc[S::TN][S::TM] = {}, a[2][S::TM], b[2][S::TN];
  auto load = [&](int f, int p) {
#pragma unroll
    for (int i = 0; i < S::TM; i += 4)
      load_quad(&a[f][i], as + read + 4 * (S::row(p) * S::A_PITCH + 8 * i));
#pragma unroll
    for (int j = 0; j < S::TN; j += 4)
      load_quad(&b[f][j], bs + read + 4 * (S::row(p) * S::B_PITCH + 4 * j));
  };
  // In an order with few bank conflicts.
  auto update = [&](int p) {
#pragma unroll
    for (int j = 0; j < S::TN; ++j)
#pragma unroll
      for (int x = 0; x < S::TM; ++x) {
        const int i = j % 2 ? S::TM - 1 - x : x;
        acc[j][i] += a[p % 2][i ^ S::swap(p)] * b[p % 2][j ^ S::swap(p)];
      }
  };

#pragma unroll 1
  for (int s = 0; s < S::STAGES - 1; ++s) {
    if (s < steps) copy(std::true_type());
    commit_group();
  }
  wait_group<S::STAGES - 2>();
  __syncthreads();
  load(0, 0);
#pragma unroll 1
  for (int left = steps - 1;; --left) {
    if (left >= S::STAGES - 1) copy(std::false_type());
    commit_group();
#pragma unroll
    for (int p = 0; p + 1 < S::BK; ++p) {
      load((p + 1) % 2, p + 1);
      update(p);
    }
    if (left == 0) break;
    wait_group<S::STAGES - 2>();
    __syncthreads();
    read = next(read);
    load(0, 0);
    update(S::BK - 1);
  }
  update(S::BK - 1);

  const int rows = m - row0 - row - lane_row, columns = n - col0 - col;
  float* to = C + size_t(col0 + col) * m + row0 + row + lane_row;
#pragma unroll
  for (int j = 0; j < S::TN; ++j) {
    const int y = j / 4 * 16 + j % 4;
    if (y < columns) {
#pragma unroll
      for (int i = 0; i < S::TM; ++i)
        if (8 * i < rows) to[size_t(y) * m + 8 * i] = acc[j][i];
    }
  }
}

template <int... NUMBERS>
void launch_brief(const float* A, const float* B, float* C, int m, int n, int k, int slices) {
  using S = Brief<NUMBERS...>;
  cudaFuncSetAttribute(brief<S>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::SHARED);
  const int depth = ceil_div(ceil_div(k, slices), S::BK) * S::BK;
  slices = ceil_div(k, depth);
  float* to = slices > 1 ? workspace(size_t(m) * n * slices) : C;
  const dim3 grid(ceil_div(m, S::BM), ceil_div(n, S::BN), slices);
  brief<S><<<grid, S::THREADS, S::SHARED>>>(A, B, to, m, n, k, depth);
  if (slices > 1) add_up(to, C, size_t(m) * n, slices);
}
