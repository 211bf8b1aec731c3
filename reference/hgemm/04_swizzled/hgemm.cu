// Rung 4: tiles in shared memory, swizzled.
//
// Changed:  the four 16-byte chunks of a line of a tile change places: chunk c of line l lies where
//           chunk c ^ (l / 2) ^ (l / 8), modulo 4, would.
// Why:      a line has 64 bytes, so eight lines below each other have their chunk c in two groups of
//           four banks, and ldmatrix reads them one after the other. Exchanged, the eight chunks lie
//           in eight groups, and one wavefront brings them: eight lines in a row, as B's, and four
//           pairs of lines eight apart, as rows of A are dealt out. No byte is lost to padding.
// Tile:     BM = BN = 128, BK = 32, warp 64 x 32, 16 KiB of shared memory, 256 threads.
// Bound:    waiting for tiles.
// Source:   Kerr, "Developing CUDA Kernels to Push Tensor Cores to the Absolute Limit on NVIDIA
//           A100", GTC 2020.
// Command:  grade reference/hgemm/04_swizzled --lab hgemm
#include "gemm.cuh"

constexpr int BM = 128, BN = 128, BK = 32, WM = 64, WN = 32;
constexpr int THREADS = 32 * (BM / WM) * (BN / WN);
constexpr int CHUNK = 8, CHUNKS = BK / CHUNK;  // halves in 16 bytes; so many make a line of a tile
constexpr int GROUPS = WM / 32, COLUMNS = WN / 16;  // of 32 rows and of 16 columns of a warp's tile
static_assert(BM == BN, "both tiles are loaded in the same way");

// Where a chunk of a line lies in a tile, in halves.
__device__ int place(int line, int chunk) {
  return line * BK + (chunk ^ (line / 2) ^ (line / 8)) % CHUNKS * CHUNK;
}

// Eight halves along K, of which `inside` exist, as 16 bytes.
template <bool ALIGNED>
__device__ int4 chunk_at(const __half* from, int inside) {
  if constexpr (ALIGNED) {
    return inside > 0 ? *reinterpret_cast<const int4*>(from) : make_int4(0, 0, 0, 0);
  } else {
    __align__(16) __half values[CHUNK];
#pragma unroll
    for (int u = 0; u < CHUNK; ++u) values[u] = u < inside ? from[u] : __float2half(0.0f);
    return *reinterpret_cast<const int4*>(values);
  }
}

// Lines past the edge become the last one, whose products nobody stores.
template <bool ALIGNED>
__device__ void load_tile(__half* tile, const __half* matrix, int first, int lines, int p0, int k) {
#pragma unroll
  for (int at = 0; at < BM * CHUNKS; at += THREADS) {
    const int line = (at + threadIdx.x) / CHUNKS, chunk = threadIdx.x % CHUNKS;
    const int p = p0 + chunk * CHUNK;
    const __half* from = matrix + min(first + line, lines - 1) * size_t(k) + p;
    *reinterpret_cast<int4*>(tile + place(line, chunk)) = chunk_at<ALIGNED>(from, k - p);
  }
}

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
__global__ void __launch_bounds__(THREADS)
    hgemm(const __half* A, const __half* B, __half* C, int m, int n, int k) {
  __shared__ __align__(16) __half As[BM * BK], Bs[BN * BK];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int tile_row = blockIdx.x * BM, tile_col = blockIdx.y * BN;
  const int warp_row = warp % (BM / WM) * WM, warp_col = warp / (BM / WM) * WN;
  // The rows of the matrices that this lane names, and their places along K.
  const int from_a = warp_row + lane % 8 / 2 * 8 + lane / 16 * 2 + lane % 2;
  const int from_b = warp_col + lane % 16;
  const int chunk_a = lane / 8 % 2, chunk_b = lane / 16;

  float sums[COLUMNS][GROUPS][4][4] = {};
  for (int p0 = 0; p0 < k; p0 += BK) {
    load_tile<ALIGNED>(As, A, tile_row, m, p0, k);
    load_tile<ALIGNED>(Bs, B, tile_col, n, p0, k);
    __syncthreads();
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
    __syncthreads();
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
  kernel<<<grid, THREADS>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
