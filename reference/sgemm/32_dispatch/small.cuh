// The small kernel: operands as they lie, K split among groups of warps within the block, and in
// slices among blocks.
#pragma once

#include "async_copy.cuh"
#include "overlap.cuh"
#include "tile.cuh"
#include "workspace.cuh"

// 16 bytes from global to shared memory, of which the first `bytes` are read and the rest are zero.
__device__ __forceinline__ void copy_async_16(float* to, const float* from, int bytes) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(bytes) : "memory");
#else
  *reinterpret_cast<float4*>(to) =
      bytes == 16 ? *reinterpret_cast<const float4*>(from) : make_float4(0, 0, 0, 0);
#endif
}
__device__ __forceinline__ void copy_async_4(float* to, const float* from, int bytes) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(bytes) : "memory");
#else
  *to = bytes ? *from : 0.0f;
#endif
}

template <int BM, int BN, int BK, int SM, int SN, int GROUPS, int STAGES, int BLOCKS>
struct Small {
  static constexpr int GROUP_THREADS = (BM / SM) * (BN / SN), THREADS = GROUP_THREADS * GROUPS;
  static constexpr int PITCH = BK + 4;  // eight rows apart by 4 banks: LDS.128 without conflicts
  static constexpr int STAGE = (BM + BN) * PITCH;
  static constexpr int SHARED = STAGES * STAGE * 4;
  static_assert(GROUP_THREADS % 32 == 0 && BK % (4 * GROUPS) == 0, "");
  static_assert(STAGES * STAGE >= (GROUPS - 1) * BM * BN, "the sums of the groups fit");

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
};

template <int BM, int BN, int BK, int SM, int SN, int GROUPS, int STAGES, int BLOCKS, bool WIDE>
__global__ __launch_bounds__(Small<BM, BN, BK, SM, SN, GROUPS, STAGES, BLOCKS>::THREADS, BLOCKS)
void small(const float* A, const float* B, float* C, int m, int n, int k, int depth) {
  using S = Small<BM, BN, BK, SM, SN, GROUPS, STAGES, BLOCKS>;
  extern __shared__ __align__(128) float smem[];
  let_next_launch_begin();
  const int row0 = blockIdx.x * BM, col0 = blockIdx.y * BN;
  const int first = blockIdx.z * depth;
  C += size_t(blockIdx.z) * m * n;
  const int group = threadIdx.x / S::GROUP_THREADS, t = threadIdx.x % S::GROUP_THREADS;
  const int i0 = S::row(t), j0 = S::col(t);

  // A thread copies a quad of p of every LINES-th line, or where lines are not aligned one value,
  // so that a warp's are neighbours. Rows beyond the edge repeat the last, or are zero.
  constexpr int WIDTH = WIDE ? 4 : 1, COLUMNS = BK / WIDTH, LINES = S::THREADS / COLUMNS;
  constexpr int COPIES = (BM + BN) / LINES;
  static_assert(S::THREADS % COLUMNS == 0 && (BM + BN) % LINES == 0, "");
  const int q = threadIdx.x % COLUMNS * WIDTH, line = threadIdx.x / COLUMNS;
  auto of_a = [&](int x) {
    return (x + 1) * LINES <= BM || (x * LINES < BM && line + x * LINES < BM);
  };
  int from[WIDE ? COPIES : 1];  // in elements: an operand of the lab has at most 2^26
  if constexpr (WIDE) {
#pragma unroll
    for (int x = 0; x < COPIES; ++x) {
      const int l = line + x * LINES;
      from[x] = (of_a(x) ? min(row0 + l, m - 1) : min(col0 + l - BM, n - 1)) * k + q + first;
    }
  }
  const int len = min(depth, k - first);
  auto fill = [&](int stage, int p0) {
    float* to = smem + stage * S::STAGE + line * S::PITCH + q;
    const bool there = p0 + q < len;
    if constexpr (WIDE) {
#pragma unroll
      for (int x = 0; x < COPIES; ++x)
        copy_async_16(to + x * LINES * S::PITCH, (of_a(x) ? A : B) + (there ? from[x] + p0 : 0),
                      there ? 16 : 0);
    } else {
      const int rows = there ? m - row0 - line : 0, cols = there ? n - col0 + BM - line : 0;
      const unsigned a = unsigned(row0 + line) * k + first + q + p0;  // wraps beyond the edge
      const unsigned b = unsigned(col0 + line - BM) * k + first + q + p0;
#pragma unroll
      for (int x = 0; x < COPIES; ++x) {
        const bool some = x * LINES < (of_a(x) ? rows : cols);
        copy_async_4(to + x * LINES * S::PITCH,
                     (of_a(x) ? A : B) + (some ? (of_a(x) ? a : b) + unsigned(x * LINES) * k : 0),
                     some ? 4 : 0);
      }
    }
  };

  const int steps = (len + BK - 1) / BK;
#pragma unroll
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
  wait_group<0>();
  __syncthreads();
  constexpr int THREAD_TILE = SM * SN;
  if (group > 0) {
#pragma unroll
    for (int x = 0; x < THREAD_TILE; ++x)
      smem[((group - 1) * THREAD_TILE + x) * S::GROUP_THREADS + t] = acc[x / SN][x % SN];
  }
  __syncthreads();
  if (group > 0) return;
#pragma unroll
  for (int g = 0; g < GROUPS - 1; ++g)
#pragma unroll
    for (int x = 0; x < THREAD_TILE; ++x)
      acc[x / SN][x % SN] += smem[(g * THREAD_TILE + x) * S::GROUP_THREADS + t];
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


// Adds the slices' sums, always in the same order.
__global__ void add_slices(const float* partial, float* C, size_t count, int slices) {
  wait_for_launches_before();
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float sum = 0;
  for (int z = 0; z < slices; ++z) sum += partial[z * count + i];
  C[i] = sum;
}

template <int BM, int BN, int BK, int SM, int SN, int GROUPS, int STAGES, int BLOCKS>
void launch_small(const float* A, const float* B, float* C, int m, int n, int k, int slices) {
  using S = Small<BM, BN, BK, SM, SN, GROUPS, STAGES, BLOCKS>;
  auto kernel = k % 4 == 0 ? small<BM, BN, BK, SM, SN, GROUPS, STAGES, BLOCKS, true>
                           : small<BM, BN, BK, SM, SN, GROUPS, STAGES, BLOCKS, false>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::SHARED);
  const int depth = ceil_div(ceil_div(k, slices), BK) * BK;
  slices = ceil_div(k, depth);
  const size_t count = size_t(m) * n;
  float* to = slices > 1 ? workspace(count * slices) : C;
  const dim3 grid(ceil_div(m, BM), ceil_div(n, BN), slices);
  kernel<<<grid, S::THREADS, S::SHARED>>>(A, B, to, m, n, k, depth);
  if (slices > 1)
    launch_early(add_slices, unsigned((count + 255) / 256), 256, 0, to, C, count, slices);
}
