// Rung 7: blocks that run at the same time lie close together in C.
//
// Changed:  the grid is one row of blocks; they fill C in bands of 8 columns of tiles, along the
//           band first, where the hardware's order goes down whole columns of tiles. A stage has 64
//           along K, not 32: half as many barriers, and lines of 128 bytes, which need another
//           swizzle. There are as many stages as the GPU has room for, 4 or 3.
// Why:      132 blocks run at once on an H200. At 8192 that is two columns of 64 tiles, which need
//           64 lines of tiles of 128 from A and 2 of 256 from B; 16 x 8 tiles need 16 and 8, less
//           than half as many bytes. The rest comes from L2, and tensor cores ask for more than
//           DRAM brings.
// Tile:     BM = 128, BN = 256, BK = 64, warp 64 x 64, 4 stages in 192 KiB of shared memory or 3 in
//           144, 256 threads, bands of 8 tiles.
// Bound:    the tensor cores, as far as mma.sync uses them: on sm_90 only wgmma uses all of them.
// Source:   CUTLASS, "Efficient GEMM in CUDA" (threadblock rasterization); rung 24 of sgemm.
// Command:  grade reference/hgemm/07_rasterised --lab hgemm
#include "gemm.cuh"

constexpr int BM = 128, BN = 256, BK = 64, WM = 64, WN = 64;
constexpr int BAND = 8;  // columns of tiles
constexpr int THREADS = 32 * (BM / WM) * (BN / WN);
constexpr int CHUNK = 8, CHUNKS = BK / CHUNK;  // halves in 16 bytes; so many make a line of a tile
constexpr int GROUPS = WM / 32, COLUMNS = WN / 16;  // of 32 rows and of 16 columns of a warp's tile
constexpr int STAGE = (BM + BN) * BK;               // halves of a stage: A's tile, then B's
constexpr int STEPS = BK / 16;                      // products along K in a tile

// Where a chunk of a line lies in a tile, in halves. Lines 0 to 7, and the two that begin every 8,
// have it at different places: ldmatrix reads both kinds of eight.
__device__ int place(int line, int chunk) {
  return line * BK + (chunk ^ line ^ line / 8 * 2) % CHUNKS * CHUNK;
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
__device__ void load_matrices(unsigned& a, unsigned& b, unsigned& c, unsigned& d,
                              const __half* row) {
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

// What a warp multiplies in one step along K: its 64 rows of A and 64 columns of B.
struct Fragments {
  unsigned a[GROUPS][4][2], b[COLUMNS][4];

  // row, column: the lines of the tiles that this lane names. Where a line lies is an exclusive or
  // of what its bits say, so constants join the lane's place at the end.
  __device__ void load(const __half* As, const __half* Bs, int row, int column, int step) {
    const int lane = threadIdx.x % 32;
    const int a_at = place(row, lane / 8 % 2), b_at = place(column, lane / 16);
#pragma unroll
    for (int v = 0; v < COLUMNS; ++v)
      load_matrices(b[v][0], b[v][1], b[v][2], b[v][3], Bs + (b_at ^ place(v * 16, step * 2)));
#pragma unroll
    for (int g = 0; g < GROUPS; ++g)
#pragma unroll
      for (int r = 0; r < 4; r += 2)
        load_matrices(a[g][r][0], a[g][r][1], a[g][r + 1][0], a[g][r + 1][1],
                      As + (a_at ^ place(g * 32 + r * 2, step * 2)));
  }
};

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

// Which tile of `rows` by `columns` the block of this number computes.
__device__ int2 tile_at(int block, int rows, int columns) {
  const int band = block / (BAND * rows), rest = block % (BAND * rows);
  const int width = min(BAND, columns - band * BAND);  // the last band may be narrower
  return make_int2(rest / width, band * BAND + rest % width);
}

// ALIGNED: k is a multiple of 8, so that every line begins at a multiple of 16 bytes.
template <bool ALIGNED, int STAGES>
__global__ void __launch_bounds__(THREADS, 1)
    hgemm(const __half* A, const __half* B, __half* C, int m, int n, int k, int tile_rows,
          int tile_columns) {
  extern __shared__ __align__(128) __half shared[];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int2 mine = tile_at(blockIdx.x, tile_rows, tile_columns);
  const int tile_row = mine.x * BM, tile_col = mine.y * BN;
  const int warp_row = warp % (BM / WM) * WM, warp_col = warp / (BM / WM) * WN;
  const int row = warp_row + lane % 8 / 2 * 8 + lane / 16 * 2 + lane % 2;
  const int column = warp_col + lane % 16;

  TileLoader<BM, ALIGNED> a_tile(A, tile_row, m, k);
  TileLoader<BN, ALIGNED> b_tile(B, tile_col, n, k);
#pragma unroll
  for (int stage = 0; stage < STAGES - 1; ++stage) {
    a_tile.load_tile(shared + stage * STAGE);
    b_tile.load_tile(shared + stage * STAGE + BM * BK);
    commit_group();
  }
  float sums[COLUMNS][GROUPS][4][4] = {};
  Fragments fragments[2];
  wait_group<STAGES - 2>();
  __syncthreads();
  fragments[0].load(shared, shared + BM * BK, row, column, 0);
  int stage = 0;
  for (int p0 = 0; p0 < k; p0 += BK) {
    __half* free = shared + (stage + STAGES - 1) % STAGES * STAGE;  // all are done with it
    a_tile.load_tile(free);
    b_tile.load_tile(free + BM * BK);
    commit_group();
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
      if (step == STEPS - 1) {  // the next step is the next tile's first
        stage = (stage + 1) % STAGES;
        wait_group<STAGES - 2>();
        __syncthreads();
      }
      const __half* As = shared + stage * STAGE;
      fragments[(step + 1) % 2].load(As, As + BM * BK, row, column, (step + 1) % STEPS);
      const Fragments& now = fragments[step % 2];
#pragma unroll
      for (int v = 0; v < COLUMNS; ++v)
#pragma unroll
        for (int g = 0; g < GROUPS; ++g)
#pragma unroll
          for (int r = 0; r < 4; ++r) multiply(sums[v][g][r], now.b[v], now.a[g][r]);
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

template <bool ALIGNED, int STAGES>
void launch(const __half* A, const __half* B, __half* C, int m, int n, int k) {
  constexpr int SHARED = STAGES * STAGE * sizeof(__half);
  const int rows = (m + BM - 1) / BM, columns = (n + BN - 1) / BN;
  const auto kernel = hgemm<ALIGNED, STAGES>;
  int room = 0;
  cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
  if (STAGES > 3 && room < SHARED) return launch<ALIGNED, 3>(A, B, C, m, n, k);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED);
  kernel<<<rows * columns, THREADS, SHARED>>>(A, B, C, m, n, k, rows, columns);
}

template <>
void run_custom<__half>(thrust::device_vector<__half>& d_A, thrust::device_vector<__half>& d_B,
                        thrust::device_vector<__half>& d_C, const int m, const int n, const int k) {
  const auto run = k % CHUNK == 0 ? launch<true, 4> : launch<false, 4>;
  run(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
