// From global memory through registers to shared memory, transposed on the way.
// The same file lies beside rungs 31 and 32.
#pragma once

#include <cstdint>

namespace direct {

// Volatile, so that a load stays where the loop has it: half a K block before its store.
__device__ __forceinline__ void load_global(float4& v, const char* from) {
  asm volatile("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(from));
}
__device__ __forceinline__ float load_global_1(const char* from) {
  float v;
  asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(from));
  return v;
}
__device__ __forceinline__ void store_shared(uint32_t to, float v) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(v) : "memory");
}

constexpr int LANES_M = 4, LANES_N = 8;  // of a warp

// What a block computes, and with how much shared memory. A thread has TM x TN sums; GROUPS of
// warps share each K block (rung 32); the loop's body is UNROLL deep.
template <int TM_, int TN_, int WARPS_M_, int WARPS_N_, int GROUPS_, int BK_, int UNROLL_,
          int STAGES_>
struct Shape {
  static constexpr int TM = TM_, TN = TN_, WARPS_M = WARPS_M_, WARPS_N = WARPS_N_;
  static constexpr int GROUPS = GROUPS_, BK = BK_, UNROLL = UNROLL_, STAGES = STAGES_;
  static constexpr int WM = TM * LANES_M, WN = TN * LANES_N, BM = WM * WARPS_M, BN = WN * WARPS_N;
  static constexpr int GROUP_K = BK / GROUPS;
  static constexpr int GROUP_WARPS = WARPS_M * WARPS_N, WARPS = GROUP_WARPS * GROUPS;
  static constexpr int GROUP_THREADS = 32 * GROUP_WARPS, THREADS = 32 * WARPS;
  static constexpr int BLOCKS = WARPS <= 4 ? 2 : 1;  // of a multiprocessor
  static constexpr int A_PITCH = BM + 4, B_PITCH = BN + 4;  // floats
  static constexpr int A_STAGE = BK * A_PITCH, B_STAGE = BK * B_PITCH, STAGE = A_STAGE + B_STAGE;
  static constexpr int SHARED = STAGES * (STAGE * 4 + 16);
  static constexpr int UNITS = TM / 4 * TN;  // float4s of a thread's sums
  // Four threads copy neighbouring quads along K; the block copies so many lines at a time.
  static constexpr int LINES = THREADS / 4, A_ROWS = BM / LINES, B_ROWS = BN / LINES;
  static constexpr int CHUNKS = BK / 16, QUADS = (A_ROWS + B_ROWS) * CHUNKS;
  static constexpr int PASSES = GROUP_K / UNROLL, PART = (QUADS + PASSES - 1) / PASSES;
  static_assert(BM % LINES == 0 && BN % LINES == 0 && BK % 16 == 0, "all copy alike");
  static_assert(UNROLL % 2 == 0 && TM % 4 == 0 && TN % 4 == 0, "");
  static_assert(GROUP_K == UNROLL * PASSES && PASSES <= 2, "the body is all of it, or half");
  static_assert(STAGES >= 3, "one is read, one is ready, one is written");
  static_assert((GROUPS - 1) * UNITS * GROUP_THREADS * 16 <= STAGES * STAGE * 4,
                "the sums of the groups fit");
};

// One thread's part in loading the tiles of A and B, and in storing them transposed. The rows of A
// are swapped in pairs, as rung 29 wants them.
template <class S>
struct Loader {
  const char *a, *b;                     // the tiles' first lines, at the next K block
  uint32_t line[S::A_ROWS + S::B_ROWS];  // bytes from there to this thread's place in its lines
  uint32_t a_to, b_to;                   // in stage 0
  int left;                              // of K
  bool wide;                             // lines are aligned to 16 bytes

  __device__ __forceinline__ Loader(const float* A, const float* B, int row0, int col0, int m,
                                    int n, int k, int p0, uint32_t base)
      : a(reinterpret_cast<const char*>(A + size_t(row0) * k + p0)),
        b(reinterpret_cast<const char*>(B + size_t(col0) * k + p0)), left(k - p0),
        wide(k % 4 == 0) {
    const int q = threadIdx.x % 4, first = threadIdx.x / 4;
#pragma unroll
    for (int r = 0; r < S::A_ROWS + S::B_ROWS; ++r) {  // lines past the edge repeat the last
      const int own = first + (r < S::A_ROWS ? r : r - S::A_ROWS) * S::LINES;
      line[r] = 4 * (uint32_t(min(own, r < S::A_ROWS ? m - 1 - row0 : n - 1 - col0)) * k + 4 * q);
      asm volatile("" : "+r"(line[r]));  // not to be computed again
    }
    a_to = base + 4 * (4 * q * S::A_PITCH + (first ^ 1));
    b_to = base + 4 * (S::A_STAGE + 4 * q * S::B_PITCH + first);
    asm volatile("" : "+r"(a_to), "+r"(b_to));
  }

  __device__ __forceinline__ const char* place(int x) const {
    const int row = x / S::CHUNKS;
    return (row < S::A_ROWS ? a : b) + line[row] + x % S::CHUNKS * 64;
  }

  // Quads FIRST to LAST of the next K block.
  template <int FIRST, int LAST>
  __device__ __forceinline__ void load(float4* v) {
    if (wide && left >= S::BK) {
#pragma unroll
      for (int x = FIRST; x < LAST; ++x) load_global(v[x - FIRST], place(x));
    } else if (left >= S::BK) {
#pragma unroll
      for (int x = FIRST; x < LAST; ++x)
        v[x - FIRST] = make_float4(load_global_1(place(x)), load_global_1(place(x) + 4),
                                   load_global_1(place(x) + 8), load_global_1(place(x) + 12));
    } else {
      const int mine = left - int(threadIdx.x) % 4 * 4;
#pragma unroll
      for (int x = FIRST; x < LAST; ++x) {
        const float* p = reinterpret_cast<const float*>(place(x));
        const int there = mine - x % S::CHUNKS * 16;
        v[x - FIRST] = make_float4(there > 0 ? p[0] : 0.0f, there > 1 ? p[1] : 0.0f,
                                   there > 2 ? p[2] : 0.0f, there > 3 ? p[3] : 0.0f);
      }
    }
    if (LAST == S::QUADS) {
      a += 4 * S::BK, b += 4 * S::BK, left -= S::BK;
      asm volatile("" : "+l"(a), "+l"(b));  // else each line gets a pointer of its own
    }
  }

  template <int FIRST, int LAST>
  __device__ __forceinline__ void store(const float4* v, uint32_t offset) {
#pragma unroll
    for (int x = FIRST; x < LAST; ++x) {
      constexpr int A_PITCH = S::A_PITCH, B_PITCH = S::B_PITCH;
      const int row = x / S::CHUNKS, k = x % S::CHUNKS * 16;
      const bool of_a = row < S::A_ROWS;
      const int pitch = of_a ? A_PITCH : B_PITCH;
      const int line0 = (of_a ? row : row - S::A_ROWS) * S::LINES;
      const uint32_t at = (of_a ? a_to : b_to) + offset + 4 * (k * pitch + line0);
      store_shared(at, v[x - FIRST].x);
      store_shared(at + 4 * pitch, v[x - FIRST].y);
      store_shared(at + 8 * pitch, v[x - FIRST].z);
      store_shared(at + 12 * pitch, v[x - FIRST].w);
    }
  }
};

}  // namespace direct
