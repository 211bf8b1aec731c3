// The main loop: K blocks of operands as they lie, through a ring of stages in shared memory.
#pragma once

#include "async_tile.cuh"

#include <type_traits>
#include <utility>

namespace async {

// Of a warp's 4 x 8 or 8 x 4, with pairs or without.
template <class S>
struct Lanes {
  __device__ __forceinline__ static int of_four(int lane) {
    return S::PAIRS ? lane / 2 % 4 : lane % 4;
  }
  __device__ __forceinline__ static int of_eight(int lane) {
    return S::PAIRS ? lane / 8 * 2 + lane % 2 : lane / 4 ^ lane % 4;
  }
  __device__ __forceinline__ static int row(int lane) {
    return S::LANES_M == 4 ? of_four(lane) : of_eight(lane);
  }
  __device__ __forceinline__ static int col(int lane) {
    return S::LANES_M == 4 ? of_eight(lane) : of_four(lane);
  }
};

// A stage holds one K block of the tile: BK rows of BM values of A, then BK rows of BN of B. On
// sm_90 each has two mbarriers: `full` counts the threads whose copies have come, `empty` the warps
// that have read it. Before sm_90 __syncthreads() parts the K blocks.
template <class S>
struct Ring {
  uint32_t base, a_base, b_base;                 // of the ring; of this thread's values in stage 0
  uint32_t full, empty;                          // the barriers of stage 0
  uint32_t read = 0, write = 0;                  // offsets of stages, bytes
  uint32_t read_barrier = 0, write_barrier = 0;  // 8 bytes a stage
  uint32_t read_parity = 0, write_parity = 1;

  __device__ __forceinline__ explicit Ring(const float* smem) {
    const int group = threadIdx.x / S::GROUP_THREADS, t = threadIdx.x % S::GROUP_THREADS;
    const int lane = t % 32, warp = t / 32, row = S::row(group * S::GROUP_K);
    base = ::shared_address(smem);
    a_base = base + 4 * (row * S::A_PITCH + warp % S::WARPS_M * S::WM + Lanes<S>::row(lane) * 4);
    b_base = base + 4 * (S::A_STAGE + row * S::B_PITCH + warp / S::WARPS_M * S::WN +
                         Lanes<S>::col(lane) * 4);
    asm volatile("" : "+r"(base), "+r"(a_base), "+r"(b_base));  // not to be computed again
    full = base + S::BARRIERS;
    empty = full + 8 * S::STAGES;
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0) {
      for (int s = 0; s < S::STAGES; ++s) {
        ::barrier_init(full + 8 * s, S::THREADS);
        ::barrier_init(empty + 8 * s, S::WARPS);
      }
    }
#endif
  }

  __device__ __forceinline__ void wait_empty() {
#if __CUDA_ARCH__ >= 900
    ::barrier_wait(empty + write_barrier, write_parity);
#endif
  }
  // The copies of a K block are on their way; before sm_90 also where there were none.
  __device__ __forceinline__ void copied(bool any) {
#if __CUDA_ARCH__ >= 900
    const uint32_t barrier = full + write_barrier;
    if (any)
      asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier)
                   : "memory");
#else
    commit_group();
#endif
    if (!any) return;
    write += S::STAGE * 4, write_barrier += 8;
    if (write_barrier == 8 * S::STAGES) {
      write = write_barrier = 0;
      write_parity ^= 1;
    }
  }
  __device__ __forceinline__ void wait_full() {
#if __CUDA_ARCH__ >= 900
    ::barrier_wait(full + read_barrier, read_parity);
#else
    wait_group<S::AHEAD - 1>();
    __syncthreads();
#endif
  }
  __device__ __forceinline__ void was_read() {
#if __CUDA_ARCH__ >= 900
    __syncwarp();
    if (threadIdx.x % 32 == 0) ::barrier_arrive(empty + read_barrier);
#endif
    read += S::STAGE * 4, read_barrier += 8;
    if (read_barrier == 8 * S::STAGES) {
      read = read_barrier = 0;
      read_parity ^= 1;
    }
  }

  // Of value K of the body.
  template <int K>
  static __device__ __forceinline__ void update(float (&acc)[S::TM][S::TN], const float (&a)[S::TM],
                                                const float (&b)[S::TN]) {
    constexpr int SWAP = S::swap(K);
#pragma unroll
    for (int y = 0; y < S::TN; ++y)
#pragma unroll
      for (int x = 0; x < S::TM; ++x) {
        const int i = y % 2 ? x : S::TM - 1 - x;
        const int j = y < S::TN / 2 ? S::TN - 1 - y : y - S::TN / 2;
        acc[i][j] += a[i ^ 1 ^ SWAP] * b[j ^ SWAP];
      }
  }

  // acc = the product of `count` K blocks.
  __device__ __forceinline__ void multiply(Loader<S>& loader, int count,
                                           float (&acc)[S::TM][S::TN]) {
    constexpr int LAST = S::GROUP_K - 1;
    float frag_a[2][S::TM], frag_b[2][S::TN];
    uint32_t as, bs;  // where this thread reads next
    auto load_fragments = [&](int f, int k) {
#pragma unroll
      for (int i = 0; i < S::TM; i += 4)
        load_quad(&frag_a[f][i], as + 4 * (S::row(k) * S::A_PITCH + i * S::LANES_M));
#pragma unroll
      for (int j = 0; j < S::TN; j += 4)
        load_quad(&frag_b[f][j], bs + 4 * (S::row(k) * S::B_PITCH + j * S::LANES_N));
    };

    __syncthreads();     // the barriers are there; nobody reads old sums any more
    int copies = count;  // K blocks whose copies have not begun; below 0 where there are too few
#pragma unroll 1
    for (int x = 0; x < S::AHEAD; ++x) {
      if (copies > 0) {
        wait_empty();
        loader.template copy<0, S::COPIES, true>(loader.a_to + write, loader.b_to + write);
        loader.advance();
      }
      copied(copies > 0);
      --copies;
    }
#pragma unroll
    for (int i = 0; i < S::TM; ++i)
#pragma unroll
      for (int j = 0; j < S::TN; ++j) acc[i][j] = 0.0f;
    wait_full();
    as = a_base + read, bs = b_base + read;
    load_fragments(0, 0);

    // The K blocks beside which copies begin, then the others.
    auto run = [&](auto copying, int blocks) {
      constexpr bool COPYING = decltype(copying)::value;
      uint32_t a_at = 0, b_at = 0;  // where the next K block goes
      auto step = [&](auto value) {
        constexpr int K = decltype(value)::value;
        load_fragments((K + 1) % 2, K + 1);
        if constexpr (COPYING && K < S::STEPS)
          loader.template copy<S::copies_before(K), S::copies_before(K + 1), false>(a_at, b_at);
        update<K>(acc, frag_a[K % 2], frag_b[K % 2]);
      };
      for (; blocks > 0; --blocks) {
        if (COPYING) {
          wait_empty();
          a_at = loader.a_to + write, b_at = loader.b_to + write;
        }
        for_each(step, std::make_integer_sequence<int, LAST>());
        if (COPYING) loader.advance();
        was_read();
        copied(COPYING);
        if (!COPYING && blocks == 1) break;
        wait_full();
        as = a_base + read, bs = b_base + read;
        load_fragments(0, 0);
        update<LAST>(acc, frag_a[1], frag_b[1]);
      }
    };
    run(std::true_type(), copies);
    run(std::false_type(), copies > 0 ? count - copies : count);
    update<LAST>(acc, frag_a[1], frag_b[1]);
  }

  template <class Step, int... K>
  static __device__ __forceinline__ void for_each(Step step, std::integer_sequence<int, K...>) {
    (step(std::integral_constant<int, K>()), ...);
  }
};

}  // namespace async
