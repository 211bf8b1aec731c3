// How a tile is divided whose operands cp.async transposes on the way to shared memory.
#pragma once

#include "narrow_copy.cuh"
#include "turns.cuh"

namespace async {

// What a block computes, and with how much shared memory. A warp has 4 x 8 or 8 x 4 lanes, a thread
// TM x TN sums; GROUPS of warps share each K block. ALONG lanes copy neighbours along K.
template <int TM_, int TN_, int WARPS_M_, int WARPS_N_, int GROUPS_, int BK_, int STAGES_,
          int ALONG_ = 8, int LANES_M_ = 4>
struct Shape {
  static constexpr int LANES_M = LANES_M_, LANES_N = 32 / LANES_M;
  static constexpr int TM = TM_, TN = TN_, WARPS_M = WARPS_M_, WARPS_N = WARPS_N_;
  static constexpr int GROUPS = GROUPS_, BK = BK_, STAGES = STAGES_, ALONG = ALONG_;
  static constexpr int WM = TM * LANES_M, WN = TN * LANES_N, BM = WM * WARPS_M, BN = WN * WARPS_N;
  static constexpr int GROUP_K = BK / GROUPS;  // how much of it one group has, and the loop's body
  static constexpr int GROUP_WARPS = WARPS_M * WARPS_N, WARPS = GROUP_WARPS * GROUPS;
  static constexpr int GROUP_THREADS = 32 * GROUP_WARPS, THREADS = 32 * WARPS;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  static constexpr int BLOCKS = 1;  // of a multiprocessor: two would have too few registers
#else
  static constexpr int BLOCKS = (TM * TN > 64 ? 8 : 16) / WARPS;
#endif
  static constexpr int A_PITCH = BM + 4, B_PITCH = BN + 4;  // floats
  static constexpr int A_STAGE = BK * A_PITCH, B_STAGE = BK * B_PITCH, STAGE = A_STAGE + B_STAGE;
  static constexpr int AHEAD = STAGES - 2;   // stages on their way: no warp waits for the slowest
  // Pairs of lanes share their quads, so that loads take two wavefronts, not four: the copies need
  // the others. With more sums for a load, or copies that take fewer, neighbours differ in both
  // quads: rung 29 says why.
  static constexpr bool PAIRS = TM * TN <= (ALONG == 16 ? 64 : 128);
  static constexpr int SUMS = BN * A_PITCH;  // of a group, when they leave the registers
  static constexpr int larger(int x, int y) { return x > y ? x : y; }
  static constexpr int BARRIERS = 4 * larger(STAGES * STAGE, GROUPS * SUMS);  // where they lie
  static constexpr int SHARED = BARRIERS + 16 * STAGES;
  static constexpr int LINES = THREADS / ALONG;  // that the block copies at a time
  static constexpr int A_COPIES = BM / LINES, COPIES = A_COPIES + BN / LINES;
  static constexpr int STEPS = 3;  // of the loop's body, beside which the next copies begin
  static constexpr int copies_before(int step) { return (step * COPIES + STEPS - 1) / STEPS; }
  static_assert(BM % LINES == 0 && BN % LINES == 0 && BK % ALONG == 0, "all copy alike");
  static_assert(GROUP_K % 2 == 0 && GROUP_K > STEPS && TM % 4 == 0 && TN % 4 == 0, "");

  // Where the values of k lie in a stage: 32 that are copied at once in 32 banks. Eight lanes along
  // K and four lines do so by the pitch. Sixteen have to leave the order of k: odd ones come eight
  // rows later, with lines swapped in pairs of two.
  static constexpr int row(int k) { return ALONG == 8 ? k : k / 16 * 16 + k % 16 / 2 + k % 2 * 8; }
  static constexpr int swap(int k) { return ALONG == 8 ? 0 : k % 2 * 2; }
};

// One thread's part in copying the tiles of A and B. The rows of A are swapped in pairs, as rung 29
// wants them.
template <class S>
struct Loader {
  const char *a, *b;         // the tiles' first lines, at the next K block
  uint32_t line[S::COPIES];  // bytes from there to this thread's value of its lines
  uint32_t a_to, b_to;       // in stage 0
  int k;                     // of this thread's value in the next K block

  __device__ __forceinline__ Loader(const float* A, const float* B, int row0, int col0, int m,
                                    int n, int depth, int k0, uint32_t base)
      : a(reinterpret_cast<const char*>(A + size_t(row0) * depth + k0)),
        b(reinterpret_cast<const char*>(B + size_t(col0) * depth + k0)) {
    const int own = threadIdx.x % S::ALONG, first = threadIdx.x / S::ALONG;
    k = k0 + own;
#pragma unroll
    for (int x = 0; x < S::COPIES; ++x) {  // lines past the edge repeat the last
      const bool of_a = x < S::A_COPIES;
      const int own_line = first + (of_a ? x : x - S::A_COPIES) * S::LINES;
      line[x] = 4 * (uint32_t(min(own_line, of_a ? m - 1 - row0 : n - 1 - col0)) * depth + own);
      asm volatile("" : "+r"(line[x]));  // not to be computed again
    }
    a_to = base + 4 * (S::row(own) * S::A_PITCH + (first ^ 1 ^ S::swap(own)));
    b_to = base + 4 * (S::A_STAGE + S::row(own) * S::B_PITCH + (first ^ S::swap(own)));
    asm volatile("" : "+r"(a_to), "+r"(b_to));
  }

  // Copies FIRST to LAST of the next slice. A tile's first slice may begin before the lines do:
  // what is there is zero.
  template <int FIRST, int LAST, bool CHECKED>
  __device__ __forceinline__ void copy(uint32_t a_at, uint32_t b_at) const {
#pragma unroll
    for (int x = FIRST; x < LAST; ++x) {
      const bool of_a = x < S::A_COPIES;
      const char* from = (of_a ? a : b) + line[x];
      const uint32_t to = of_a ? a_at + 4 * x * S::LINES : b_at + 4 * (x - S::A_COPIES) * S::LINES;
#pragma unroll
      for (int p = 0; p < S::BK; p += S::ALONG)
        copy_async<4, 256>(to + 4 * p * (of_a ? S::A_PITCH : S::B_PITCH), from + 4 * p,
                      !CHECKED || k + p >= 0 ? 4 : 0);
    }
  }
  __device__ __forceinline__ void advance() {
    a += 4 * S::BK, b += 4 * S::BK, k += S::BK;
    asm volatile("" : "+l"(a), "+l"(b));  // else each line gets a pointer of its own
  }
};

}  // namespace async
