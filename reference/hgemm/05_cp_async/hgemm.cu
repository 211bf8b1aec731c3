// Rung 5: cp.async, four tiles deep.
//
// Changed:  tiles go from global to shared memory without passing through registers, three ahead of
//           the one that is multiplied; one barrier for each tile instead of two. Past K's end a
//           copy brings no bytes, which writes zeros. Where k is no multiple of 8 the same code loads
//           element by element and stores at once: right, but without the gain.
// Why:      the tensor cores need a tile every few hundred cycles, less than a load from memory takes.
//           Three tiles on their way cover that, and no registers wait for them.
// Tile:     BM = BN = 128, BK = 32, warp 64 x 32, 4 stages, 64 KiB of shared memory, 256 threads.
// Bound:    ldmatrix: a fragment of A serves two products of a warp, one of B eight, and the
//           products of a step wait for the loads before them.
// Source:   CUDA C++ Programming Guide, "Asynchronous Data Copies"; CUTLASS, "Efficient GEMM in CUDA".
// Command:  grade reference/hgemm/05_cp_async --lab hgemm
#include "gemm.cuh"

constexpr int BM = 128, BN = 128, BK = 32, WM = 64, WN = 32, STAGES = 4;
constexpr int THREADS = 32 * (BM / WM) * (BN / WN);
constexpr int CHUNK = 8, CHUNKS = BK / CHUNK;  // halves in 16 bytes; so many make a line of a tile
constexpr int GROUPS = WM / 32, COLUMNS = WN / 16;  // of 32 rows and of 16 columns of a warp's tile
constexpr int STAGE = (BM + BN) * BK;                       // halves of a stage: A's tile, then B's
constexpr int SHARED = STAGES * STAGE * sizeof(__half);
static_assert(BM == BN, "both tiles are loaded in the same way");

// Where a chunk of a line lies in a tile, in halves.
__device__ int place(int line, int chunk) {
  return line * BK + (chunk ^ (line / 2) ^ (line / 8)) % CHUNKS * CHUNK;
}

// Eight halves along K, of which `inside` exist; under way until waited for if ALIGNED.
template <bool ALIGNED>
__device__ void copy_chunk(__half* to, const __half* from, int inside) {
  if constexpr (ALIGNED) {
    const unsigned address = __cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                 "r"(inside > 0 ? 16 : 0)
                 : "memory");
  } else {
    __align__(16) __half values[CHUNK];
#pragma unroll
    for (int u = 0; u < CHUNK; ++u) values[u] = u < inside ? from[u] : __float2half(0.0f);
    *reinterpret_cast<int4*>(to) = *reinterpret_cast<const int4*>(values);
  }
}

// Ends a group of copies.
__device__ void commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most PENDING groups are under way.
template <int PENDING>
__device__ void wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// One thread's part in loading tiles of A or B: some lines, at one chunk along K.
template <int LINES, bool ALIGNED>
struct TileLoader {
  static constexpr int STEP = THREADS / CHUNKS, COPIES = LINES / STEP;  // lines between its copies
  const __half* from[COPIES];
  int to, left;  // its first place in a tile; of the lines, from the chunk on

  // Lines past the edge become the last one, whose products nobody stores.
  __device__ TileLoader(const __half* matrix, int first, int lines, int k) {
    const int line = threadIdx.x / CHUNKS, chunk = threadIdx.x % CHUNKS;
#pragma unroll
    for (int r = 0; r < COPIES; ++r)
      from[r] = matrix + min(first + line + r * STEP, lines - 1) * size_t(k) + chunk * CHUNK;
    to = place(line, chunk);
    left = k - chunk * CHUNK;
  }

  // Begins to copy the next tile. STEP is a multiple of 32 lines, after which places repeat.
  __device__ void load_tile(__half* tile) {
    static_assert(STEP % 32 == 0);
#pragma unroll
    for (int r = 0; r < COPIES; ++r) {
      copy_chunk<ALIGNED>(tile + to + r * STEP * BK, from[r], left);
      from[r] += BK;
    }
    left -= BK;
  }
};

// Four 8 x 8 matrices; lanes 8q to 8q + 7 name the rows of matrix q.
__device__ void load_matrices(unsigned& a, unsigned& b, unsigned& c, unsigned& d, const __half* row) {
  const unsigned address = __cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "r"(address)
               : "memory");
}

__device__ void multiply(float (&sum)[4], const unsigned (&x)[4], const unsigned (&y)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
}

// Eight rows of a column of C from row i on.
__device__ void store(__half* column, int i, int m, const __half2 (&values)[4]) {
  if (m % CHUNK == 0) {
    if (i < m) *reinterpret_cast<int4*>(column + i) = *reinterpret_cast<const int4*>(values);
    return;
  }
  const __half* value = reinterpret_cast<const __half*>(values);
#pragma unroll
  for (int u = 0; u < CHUNK; ++u)
    if (i + u < m) column[i + u] = value[u];
}

// ALIGNED: k is a multiple of 8, so that every line begins at a multiple of 16 bytes.
template <bool ALIGNED>
__global__ void __launch_bounds__(THREADS, 2)
    hgemm(const __half* A, const __half* B, __half* C, int m, int n, int k) {
  extern __shared__ __align__(128) __half shared[];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int tile_row = blockIdx.x * BM, tile_col = blockIdx.y * BN;
  const int warp_row = warp % (BM / WM) * WM, warp_col = warp / (BM / WM) * WN;
  // The rows of the matrices that this lane names, and their places along K.
  const int from_a = warp_row + lane % 8 / 2 * 8 + lane / 16 * 2 + lane % 2;
  const int from_b = warp_col + lane % 16;
  const int chunk_a = lane / 8 % 2, chunk_b = lane / 16;

  TileLoader<BM, ALIGNED> a_tile(A, tile_row, m, k);
  TileLoader<BN, ALIGNED> b_tile(B, tile_col, n, k);
#pragma unroll
  for (int stage = 0; stage < STAGES - 1; ++stage) {
    a_tile.load_tile(shared + stage * STAGE);
    b_tile.load_tile(shared + stage * STAGE + BM * BK);
    commit_group();
  }
  float sums[COLUMNS][GROUPS][4][4] = {};
  int stage = 0;
  for (int p0 = 0; p0 < k; p0 += BK) {
    wait_group<STAGES - 2>();  // for this tile; after the barrier all are done with the last
    __syncthreads();
    const __half* As = shared + stage * STAGE;
    const __half* Bs = As + BM * BK;
    __half* free = shared + (stage + STAGES - 1) % STAGES * STAGE;
    a_tile.load_tile(free);
    b_tile.load_tile(free + BM * BK);
    commit_group();
    stage = (stage + 1) % STAGES;
#pragma unroll
    for (int p = 0; p < BK; p += 16) {
      unsigned a[GROUPS][4][2], b[COLUMNS][4];
#pragma unroll
      for (int v = 0; v < COLUMNS; ++v)
        load_matrices(b[v][0], b[v][1], b[v][2], b[v][3],
                      Bs + place(from_b + v * 16, chunk_b + p / CHUNK));
#pragma unroll
      for (int g = 0; g < GROUPS; ++g)
#pragma unroll
        for (int r = 0; r < 4; r += 2)
          load_matrices(a[g][r][0], a[g][r][1], a[g][r + 1][0], a[g][r + 1][1],
                        As + place(from_a + g * 32 + r * 2, chunk_a + p / CHUNK));
#pragma unroll
      for (int v = 0; v < COLUMNS; ++v)
#pragma unroll
        for (int g = 0; g < GROUPS; ++g)
#pragma unroll
          for (int r = 0; r < 4; ++r) multiply(sums[v][g][r], b[v], a[g][r]);
    }
  }
#pragma unroll
  for (int v = 0; v < COLUMNS; ++v)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int j = tile_col + warp_col + v * 16 + half * 8 + lane / 4;
      if (j >= n) break;
#pragma unroll
      for (int g = 0; g < GROUPS; ++g) {
        __align__(16) __half2 values[4];
#pragma unroll
        for (int r = 0; r < 4; ++r)
          values[r] = __floats2half2_rn(sums[v][g][r][2 * half], sums[v][g][r][2 * half + 1]);
        store(C + j * size_t(m), tile_row + warp_row + g * 32 + lane % 4 * 8, m, values);
      }
    }
}

template <>
void run_custom<__half>(thrust::device_vector<__half>& d_A, thrust::device_vector<__half>& d_B,
                        thrust::device_vector<__half>& d_C, const int m, const int n,
                        const int k) {
  const dim3 grid((m + BM - 1) / BM, (n + BN - 1) / BN);
  const auto kernel = k % CHUNK == 0 ? hgemm<true> : hgemm<false>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED);
  kernel<<<grid, THREADS, SHARED>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
