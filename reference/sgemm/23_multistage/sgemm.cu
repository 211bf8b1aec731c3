// Rung 23: cp.async, four tiles deep.
//
// Changed:  copies go from global to shared memory without passing through registers, three tiles
//           ahead of the one that is multiplied. A copy is one float, which the thread puts where
//           the transposed tile wants it: no float4 loads, so alignment does not matter, and at K's
//           edge it copies no bytes, which writes a zero. sm_75 has no such copies; there the same
//           code loads and stores at once: right, but without the gain. The FMAs go down one column
//           of the thread tile and up the next.
// Why:      no registers wait for data, no instruction stores them to shared memory, and three
//           tiles of time cover a latency that one may not. The freed registers hold eight
//           pointers; there is no second set of values for q + 1: the compiler orders the loads.
//           With the plain order of the sums ptxas gave this loop registers for which 512 FFMA had
//           to wait 131 cycles on sm_90, now 65: rung 29 explains why.
// Tile:     BM = BN = 128, BK = 8, warp 64 x 32, TM = TN = 8, 4 stages, 33 KiB of shared memory,
//           256 threads.
// Bound:    instruction issue.
// Command:  grade reference/sgemm/23_multistage
#include "gemm.cuh"

constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, STAGES = 4;
constexpr int WM = 64, WN = 32;  // the warp tile
constexpr int THREADS = BM / TM * (BN / TN);
constexpr int PITCH = BM + 4;                                // of a row of a tile
constexpr int STEP = THREADS / BK, COPIES = BM * BK / THREADS;  // lines between a thread's copies
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int BLOCKS = 1;  // at once on a multiprocessor of sm_75, whose shared memory holds no two
#else
constexpr int BLOCKS = 2;
#endif
static_assert(BM == BN && COPIES * STEP == BM, "both tiles are loaded in the same way");

// *to = *from, or zero; in sm_80 and above under way until waited for.
__device__ void cp_async(float* to, const float* from, bool inside) {
#if __CUDA_ARCH__ >= 800
  const unsigned address = __cvta_generic_to_shared(to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from),
               "r"(inside ? 4 : 0));
#else
  *to = inside ? *from : 0.0f;
#endif
}

// Ends a group of copies.
__device__ void commit_group() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;");
#endif
}

// Waits until at most PENDING groups are under way.
template <int PENDING>
__device__ void wait_group() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

// One thread's part in loading tiles of A or B: every STEPth line, at one place along K.
struct TileLoader {
  const float* from[COPIES];

  // Lines past the edge become the last one, whose products nobody stores.
  __device__ TileLoader(const float* matrix, int first, int lines, int k) {
#pragma unroll
    for (int r = 0; r < COPIES; ++r) {
      const int line = min(first + int(threadIdx.x) / BK + r * STEP, lines - 1);
      from[r] = matrix + line * size_t(k) + threadIdx.x % BK;
    }
  }

  // Begins to copy the next tile; `inside` says whether its place along K is.
  __device__ void load_tile(float (*tile)[PITCH], bool inside) {
#pragma unroll
    for (int r = 0; r < COPIES; ++r) {
      cp_async(&tile[threadIdx.x % BK][threadIdx.x / BK + r * STEP], from[r], inside);
      from[r] += BK;
    }
  }
};

// The eight values of a thread: two float4 of a row of the tile, `apart` floats from one another.
__device__ void load_fragment(float (&to)[8], const float* tile, int apart) {
  *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(tile);
  *reinterpret_cast<float4*>(to + 4) = *reinterpret_cast<const float4*>(tile + apart);
}

// Four rows of a column of C from row i on: one float4 where that is possible.
__device__ void store(float* column, int i, int m, const float* value) {
  if (i + 4 <= m && reinterpret_cast<size_t>(column + i) % 16 == 0) {
    *reinterpret_cast<float4*>(column + i) = make_float4(value[0], value[1], value[2], value[3]);
  } else {
#pragma unroll
    for (int u = 0; u < 4; ++u)
      if (i + u < m) column[i + u] = value[u];
  }
}

__global__ void __launch_bounds__(THREADS, BLOCKS)
    sgemm(const float* A, const float* B, float* C, int m, int n, int k) {
  __shared__ __align__(16) float As[STAGES][BK][PITCH], Bs[STAGES][BK][PITCH];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // In the tile, the first of its rows and of its columns.
  const int thread_row = warp % (BM / WM) * WM + lane / 2 % 8 * 4;
  const int thread_col = warp / (BM / WM) * WN + (lane / 16 * 2 + lane % 2) * 4;
  const int tile_row = blockIdx.x * BM, tile_col = blockIdx.y * BN;
  TileLoader a_tile(A, tile_row, m, k), b_tile(B, tile_col, n, k);
  int left = k - int(threadIdx.x % BK);  // of the line, from its place on

#pragma unroll
  for (int stage = 0; stage < STAGES - 1; ++stage) {
    a_tile.load_tile(As[stage], left > 0);
    b_tile.load_tile(Bs[stage], left > 0);
    left -= BK;
    commit_group();
  }
  float acc[TN][TM] = {};
  for (int p0 = 0; p0 < k; p0 += STAGES * BK) {  // beyond k there are zeros
#pragma unroll
    for (int stage = 0; stage < STAGES; ++stage) {
      wait_group<STAGES - 2>();  // for this tile; after the barrier all are done with the last
      __syncthreads();
      const int free = (stage + STAGES - 1) % STAGES;
      a_tile.load_tile(As[free], left > 0);
      b_tile.load_tile(Bs[free], left > 0);
      left -= BK;
      commit_group();
#pragma unroll
      for (int q = 0; q < BK; ++q) {
        float frag_a[TM], frag_b[TN];
        load_fragment(frag_a, &As[stage][q][thread_row], WM / 2);
        load_fragment(frag_b, &Bs[stage][q][thread_col], WN / 2);
#pragma unroll
        for (int v = 0; v < TN; ++v)
#pragma unroll
          for (int t = 0; t < TM; ++t) {
            const int u = v % 2 ? t : TM - 1 - t;  // down a column, up the next: rung 29 says why
            acc[v][u] += frag_a[u] * frag_b[v];
          }
      }
    }
  }
#pragma unroll
  for (int v = 0; v < TN; ++v) {
    const int j = tile_col + thread_col + v / 4 * (WN / 2) + v % 4;
    if (j >= n) break;
#pragma unroll
    for (int u = 0; u < TM; u += 4)
      store(C + j * size_t(m), tile_row + thread_row + u / 4 * (WM / 2), m, acc[v] + u);
  }
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  const dim3 grid((m + BM - 1) / BM, (n + BN - 1) / BN);
  sgemm<<<grid, THREADS>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
