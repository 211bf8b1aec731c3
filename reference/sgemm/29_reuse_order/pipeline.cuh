// The main loop: K blocks of packed operands through a ring of stages in shared memory.
// The same file lies beside rungs 28 to 30 and 32.
#pragma once

#include "async_copy.cuh"
#include "tile.cuh"

// Where in the ring the next product begins.
struct PipelineState {
  int loaded = 0;       // K blocks of the products before it
  uint32_t offset = 0;  // of the stage being read, in bytes
};

// A stage holds one K block of the tile: BK rows of BM values of A, then BK rows of BN of B.
// On sm_90 each has two mbarriers: `full` counts the bytes that have come, `empty` the warps that
// have read it. Before sm_90 groups of cp.async and __syncthreads() do.
template <class S>
struct Pipeline {
  // Byte addresses in shared memory. 32 bits each, and opaque to the compiler, so that it keeps
  // them in registers and does not compute them again at every stage.
  uint32_t base, a_base, b_base;  // of the ring; of this thread's values of A and B in stage 0
  uint32_t full, empty;           // the barriers of stage 0
  float* smem;                    // the ring
  uint32_t parity = 0;            // of the barriers of the stage being read

  __device__ __forceinline__ Pipeline(float* smem, uint32_t base, uint32_t a_base, uint32_t b_base)
      : base(base), a_base(a_base), b_base(b_base), smem(smem) {
    full = base + S::STAGES * S::STAGE * 4;
    empty = full + 8 * S::STAGES;
  }

  // Once, before the first product.
  __device__ __forceinline__ void init() {
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0) {
      for (int s = 0; s < S::STAGES; ++s) {
        barrier_init(full + 8 * s, 1);
        barrier_init(empty + 8 * s, S::WARPS);
      }
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
#endif
  }

  // Starts the copies of K block x of this call.
  __device__ __forceinline__ void load_stage(const float* A, const float* B, int x,
                                             const PipelineState& state) {
    const int number = state.loaded + x, s = number % S::STAGES;
#if __CUDA_ARCH__ >= 900
    const uint32_t to = base + s * (S::STAGE * 4), barrier = full + 8 * s;
    barrier_wait(empty + 8 * s, (number / S::STAGES & 1) ^ 1);  // passes where it is the first
    barrier_expect(barrier, S::STAGE * 4);
    bulk_copy(to, A + size_t(x) * S::A_STAGE, S::A_STAGE * 4, barrier);
    bulk_copy(to + S::A_STAGE * 4, B + size_t(x) * S::B_STAGE, S::B_STAGE * 4, barrier);
#else
    float* to = smem + s * S::STAGE;
#pragma unroll
    for (int c = threadIdx.x * 4; c < S::A_STAGE; c += S::THREADS * 4)
      copy_async_16(to + c, A + size_t(x) * S::A_STAGE + c);
#pragma unroll
    for (int c = threadIdx.x * 4; c < S::B_STAGE; c += S::THREADS * 4)
      copy_async_16(to + S::A_STAGE + c, B + size_t(x) * S::B_STAGE + c);
#endif
  }

  // acc = the product of `count` K blocks, from A and B on. update(acc, a, b) adds a's and b's
  // outer product; rung 29 is about the order in which it does.
  template <class Update>
  __device__ __forceinline__ void multiply(const float* A, const float* B, int count,
                                           float (&acc)[TM][TN], PipelineState& state,
                                           Update update) {
    constexpr int STAGES = S::STAGES, AHEAD = S::AHEAD, UNROLL = S::UNROLL;
    float frag_a[2][TM], frag_b[2][TN];
    uint32_t as, bs;  // where this thread reads next
    // Fragments f: row k of a stage.
    auto load_fragments = [&](int f, int k) {
#pragma unroll
      for (int i = 0; i < TM; i += 4) load_float4(&frag_a[f][i], as + 4 * (k * BM + i * LANES_M));
#pragma unroll
      for (int j = 0; j < TN; j += 4)
        load_float4(&frag_b[f][j], bs + 4 * (k * S::BN + j * LANES_N));
    };

    __syncthreads();  // the barriers are there; nobody reads an old stage any more
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0)
      for (int x = 0; x < AHEAD && x < count; ++x) load_stage(A, B, x, state);
    // The warps take turns in starting the copies of the K blocks that follow.
    int turn = threadIdx.x % 32 == 0 ? int(threadIdx.x) / 32 : 1 << 30;
    int next = AHEAD + turn;
#else
#pragma unroll
    for (int x = 0; x < AHEAD; ++x) {
      if (x < count) load_stage(A, B, x, state);
      commit_group();
    }
#endif
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
      for (int j = 0; j < TN; ++j) acc[i][j] = 0.0f;

#if __CUDA_ARCH__ >= 900
    barrier_wait(full + (state.offset / (S::STAGE * 4)) * 8, parity);
#else
    wait_group<AHEAD - 1>();
    __syncthreads();
#endif
    as = a_base + state.offset, bs = b_base + state.offset;
    uint32_t barrier = state.offset / (S::STAGE * 4) * 8;
    load_fragments(0, 0);
    for (int it = 0, half = 0;;) {
#pragma unroll
      for (int k = 0; k + 1 < UNROLL; ++k) {
        load_fragments((k + 1) % 2, k + 1);
        update(acc, frag_a[k % 2], frag_b[k % 2]);
      }
      as += 4 * UNROLL * BM, bs += 4 * UNROLL * S::BN;
      if (UNROLL == S::BK || (half ^= 1) == 0) {  // the stage is read; on to the next
#if __CUDA_ARCH__ >= 900
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_arrive(empty + barrier);
#endif
        state.offset += S::STAGE * 4;
        barrier += 8;
        if (barrier == 8 * STAGES) {
          state.offset = barrier = 0;
#if __CUDA_ARCH__ >= 900
          parity ^= 1;
#endif
        }
        if (++it == count) break;
#if __CUDA_ARCH__ >= 900
        if (turn-- == 0) {
          turn = S::WARPS - 1;
          if (next < count) load_stage(A, B, next, state);
          next += S::WARPS;
        }
        barrier_wait(full + barrier, parity);
#else
        wait_group<AHEAD - 2>();
        __syncthreads();
        if (it + AHEAD - 1 < count) load_stage(A, B, it + AHEAD - 1, state);
        commit_group();
#endif
        as = a_base + state.offset, bs = b_base + state.offset;
      }
      load_fragments(0, 0);
      update(acc, frag_a[1], frag_b[1]);
    }
    update(acc, frag_a[1], frag_b[1]);
    state.loaded += count;
  }

  __device__ __forceinline__ static void load_float4(float* to, uint32_t from) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3]) : "r"(from) : "memory");
  }
};
