// The main loop: K blocks through a ring of stages in shared memory.
// The same file lies beside rungs 31 and 32.
#pragma once

#include "barrier.cuh"
#include "loader.cuh"

namespace direct {

// Neighbours differ in both: rung 29 says why.
struct Lanes {
  __device__ __forceinline__ static int row(int lane) { return lane % LANES_M; }
  __device__ __forceinline__ static int col(int lane) { return lane / LANES_M ^ lane % LANES_M; }
};

// A stage holds one K block of the tile: BK rows of BM values of A, then BK rows of BN of B. On
// sm_90 each has two mbarriers: `full` counts the warps that have written it, `empty` those that
// have read it. Before sm_90 __syncthreads() parts the K blocks.
template <class S>
struct Ring {
  uint32_t base, a_base, b_base;                 // of the ring; of this thread's values in stage 0
  uint32_t full, empty;                          // the barriers of stage 0
  uint32_t read = 0, write = 0;                  // offsets of stages, bytes
  uint32_t read_barrier = 0, write_barrier = 0;  // 8 bytes a stage
  uint32_t read_parity = 0, write_parity = 1;

  __device__ __forceinline__ explicit Ring(const float* smem) {
    const int group = threadIdx.x / S::GROUP_THREADS, t = threadIdx.x % S::GROUP_THREADS;
    const int lane = t % 32, warp = t / 32;
    base = shared_address(smem);
    a_base = base + 4 * (group * S::GROUP_K * S::A_PITCH + warp % S::WARPS_M * S::WM +
                         Lanes::row(lane) * 4);
    b_base = base + 4 * (S::A_STAGE + group * S::GROUP_K * S::B_PITCH +
                         warp / S::WARPS_M * S::WN + Lanes::col(lane) * 4);
    asm volatile("" : "+r"(base), "+r"(a_base), "+r"(b_base));  // not to be computed again
    full = base + S::STAGES * S::STAGE * 4;
    empty = full + 8 * S::STAGES;
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0) {
      for (int s = 0; s < S::STAGES; ++s) {
        barrier_init(full + 8 * s, S::WARPS);
        barrier_init(empty + 8 * s, S::WARPS);
      }
    }
#endif
    __syncthreads();
  }

  __device__ __forceinline__ void wait_empty() {
#if __CUDA_ARCH__ >= 900
    barrier_wait(empty + write_barrier, write_parity);
#endif
  }
  __device__ __forceinline__ void stored() {
#if __CUDA_ARCH__ >= 900
    __syncwarp();
    if (threadIdx.x % 32 == 0) barrier_arrive(full + write_barrier);
#endif
    write += S::STAGE * 4, write_barrier += 8;
    if (write_barrier == 8 * S::STAGES) {
      write = write_barrier = 0;
      write_parity ^= 1;
    }
  }

  static __device__ __forceinline__ void load_float4(float* to, uint32_t from) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3]) : "r"(from) : "memory");
  }

  static __device__ __forceinline__ void update(float (&acc)[S::TM][S::TN], const float (&a)[S::TM],
                                                const float (&b)[S::TN]) {
#pragma unroll
    for (int y = 0; y < S::TN; ++y)
#pragma unroll
      for (int x = 0; x < S::TM; ++x) {
        const int i = y % 2 ? x : S::TM - 1 - x;
        const int j = y < S::TN / 2 ? S::TN - 1 - y : y - S::TN / 2;
        acc[i][j] += a[i ^ 1] * b[j];
      }
  }

  // acc = the product of `count` K blocks.
  __device__ __forceinline__ void multiply(Loader<S>& loader, int count,
                                           float (&acc)[S::TM][S::TN]) {
    constexpr int UNROLL = S::UNROLL;
    float frag_a[2][S::TM], frag_b[2][S::TN];
    uint32_t as, bs;
    auto load_fragments = [&](int f, int k) {
#pragma unroll
      for (int i = 0; i < S::TM; i += 4)
        load_float4(&frag_a[f][i], as + 4 * (k * S::A_PITCH + i * LANES_M));
#pragma unroll
      for (int j = 0; j < S::TN; j += 4)
        load_float4(&frag_b[f][j], bs + 4 * (k * S::B_PITCH + j * LANES_N));
    };
    constexpr int PART = S::PART, QUADS = S::QUADS, PASSES = S::PASSES;
    float4 part[PART];  // of the K block after the next, on its way
#if __CUDA_ARCH__ < 900
    __syncthreads();  // nobody reads an old stage any more
#endif
    {
      float4 first[QUADS], second[QUADS];
      loader.template load<0, QUADS>(first);
      if (count > 1) loader.template load<0, QUADS>(second);
      if (count > 2) loader.template load<0, PART>(part);
      wait_empty();
      loader.template store<0, QUADS>(first, write);
      stored();
      if (count > 1) {
        wait_empty();
        loader.template store<0, QUADS>(second, write);
        stored();
      }
    }
#pragma unroll
    for (int i = 0; i < S::TM; ++i)
#pragma unroll
      for (int j = 0; j < S::TN; ++j) acc[i][j] = 0.0f;
#if __CUDA_ARCH__ >= 900
    barrier_wait(full + read_barrier, read_parity);
#else
    __syncthreads();
#endif
    as = a_base + read, bs = b_base + read;
    load_fragments(0, 0);
    // In the middle of a stage, where there is one, and at its end.
    auto in_the_middle = [&] {
      if (count <= 2) return;
      wait_empty();
      loader.template store<0, PART>(part, write);
      if (PART < QUADS) loader.template load<PART, QUADS>(part);
    };
    auto at_the_end = [&] {
      if (PASSES == 1) in_the_middle();
      if (count <= 2) return;
      if (PART < QUADS) loader.template store<PART, QUADS>(part, write);
      stored();
      if (count > 3) loader.template load<0, PART>(part);
    };
    for (int half = 0;;) {
#pragma unroll
      for (int k = 0; k + 1 < UNROLL; ++k) {
        load_fragments((k + 1) % 2, k + 1);
        update(acc, frag_a[k % 2], frag_b[k % 2]);
      }
      if (PASSES == 1 || (half ^= 1) == 0) {
#if __CUDA_ARCH__ >= 900
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_arrive(empty + read_barrier);
#endif
        read += S::STAGE * 4, read_barrier += 8;
        if (read_barrier == 8 * S::STAGES) {
          read = read_barrier = 0;
          read_parity ^= 1;
        }
        if (count == 1) break;
        at_the_end();
        --count;
#if __CUDA_ARCH__ >= 900
        barrier_wait(full + read_barrier, read_parity);
#else
        __syncthreads();
#endif
        as = a_base + read, bs = b_base + read;
      } else {
        in_the_middle();
        as += 4 * UNROLL * S::A_PITCH, bs += 4 * UNROLL * S::B_PITCH;
      }
      load_fragments(0, 0);
      update(acc, frag_a[1], frag_b[1]);
    }
    update(acc, frag_a[1], frag_b[1]);
  }
};

}  // namespace direct
