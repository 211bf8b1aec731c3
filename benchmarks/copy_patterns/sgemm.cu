// No product: copies of 16 bytes by cp.async.cg, with and without a prefetch into the L2, to be counted
// by the simulator and by Nsight Compute (benchmarks/counters_h200.py). What of them decides how many
// wavefronts ncu counts is open: docs/explain.md.
#include "gemm.cuh"

// How many bytes the L2 is asked to fetch.
template <int PREFETCH>
__device__ void copy_16_bytes(unsigned to, const float* from, int brought) {
  if constexpr (PREFETCH == 0)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(brought));
  if constexpr (PREFETCH == 64)
    asm volatile("cp.async.cg.shared.global.L2::64B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(brought));
  if constexpr (PREFETCH == 128)
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(brought));
  if constexpr (PREFETCH == 256)
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(brought));
}

// LANES neighbours read from one line of 128 bytes, from its byte FIRST on, the next from another.
// TILES such copies follow each other, each LANES * 16 bytes further along the lines. From lane
// ZEROS on they bring no bytes. SWIZZLED: as in reference/hgemm/05_cp_async.
template <int LANES, int PREFETCH, int TILES, int FIRST, int ZEROS, bool SWIZZLED>
__global__ void copy(const float* A, float* C) {
  __shared__ __align__(128) float tiles[TILES * 128];
  const int lane = threadIdx.x, line = lane / LANES, chunk = lane % LANES;
  const float* from = A + line * 1024 + FIRST / 4 + chunk * 4;
  const int place = SWIZZLED ? line * LANES + (chunk ^ (line / 2)) % LANES : lane;
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tiles + place * 4));
#pragma unroll
  for (int tile = 0; tile < TILES; ++tile) {
    copy_16_bytes<PREFETCH>(to + tile * 512, from + tile * LANES * 4, lane < ZEROS ? 16 : 0);
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  C[lane] = tiles[lane];
}

template <int LANES, int PREFETCH, int TILES = 1, int FIRST = 0, int ZEROS = 32,
          bool SWIZZLED = false>
void go(const float* A, float* C) {
  copy<LANES, PREFETCH, TILES, FIRST, ZEROS, SWIZZLED><<<1, 32>>>(A, C);
}

// What may matter, with one size of the prefetch.
template <int PREFETCH>
void go_all(const float* A, float* C) {
  go<1, PREFETCH>(A, C);
  go<2, PREFETCH>(A, C);
  go<4, PREFETCH>(A, C);
  go<8, PREFETCH>(A, C);
  go<4, PREFETCH, 1, 64>(A, C);
  go<4, PREFETCH, 1, 0, 0>(A, C);
  go<4, PREFETCH, 1, 0, 16>(A, C);
  go<4, PREFETCH, 1, 0, 32, true>(A, C);
  go<4, PREFETCH, 1, 0, 0, true>(A, C);
  go<4, PREFETCH, 2>(A, C);
  go<4, PREFETCH, 3>(A, C);
  go<4, PREFETCH, 8>(A, C);
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  const float* A = d_A.data().get();
  float* C = d_C.data().get();
  go_all<0>(A, C);
  go_all<128>(A, C);
  go<4, 64>(A, C);
  go<4, 256>(A, C);
}
