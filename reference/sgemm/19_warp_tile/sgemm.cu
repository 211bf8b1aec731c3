// Rung 19: a tile for each warp, and a lane map that shared memory can serve at full width.
//
// Changed:  a warp owns a tile of 64 x 32 elements, its lanes 8 x 4 threads in it; before, a warp
//           was 2 x 16 threads. A lane's rows are 4x and 32 + 4x of that tile, its columns 4y and
//           16 + 4y. Lane numbers go through the 8 x 4 in pairs: x is bits 1 to 3, y bits 4 and 0.
// Why:      a warp's reads for one q are 8 + 4 different float4, twice, where 2 x 16 needs 2 + 16.
//           As experiments with 16-byte loads show, half a warp is served at once if
//           each lane shares its address with its neighbour (A here) or the one two away (B).
// Tile:     BM = BN = 128, BK = 8, warp 64 x 32, TM = TN = 8, 256 threads, 8.25 KiB of
//           shared memory.
// Bound:    instruction issue and latency: only the other block overlaps a tile's loads.
// Command:  grade reference/sgemm/19_warp_tile
#include <cstdint>

#include "gemm.cuh"

constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8;
constexpr int WM = 64, WN = 32;  // the warp tile
constexpr int THREADS = BM / TM * (BN / TN);
static_assert(BM == BN && BM * BK == 4 * THREADS, "a thread loads one float4 of each tile");

// from[line][p .. p + 3], zero outside the `lines` by `k` of `from`.
template <bool ALIGNED>
__device__ float4 load_float4(const float* from, int line, int lines, int p, int k) {
  float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (line >= lines) return v;
  from += line * size_t(k) + p;
  if (ALIGNED) {
    if (p < k) v = *reinterpret_cast<const float4*>(from);
  } else {
    if (p + 0 < k) v.x = from[0];
    if (p + 1 < k) v.y = from[1];
    if (p + 2 < k) v.z = from[2];
    if (p + 3 < k) v.w = from[3];
  }
  return v;
}

// The four values of `v` into four rows of a tile, `pitch` floats apart.
__device__ void store_transposed(float* tile, int pitch, float4 v) {
  tile[0] = v.x;
  tile[pitch] = v.y;
  tile[2 * pitch] = v.z;
  tile[3 * pitch] = v.w;
}

// The eight values of a thread: two float4 of a row of the tile, `apart` floats from one another.
__device__ void load_fragment(float (&to)[8], const float* tile, int apart) {
  *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(tile);
  *reinterpret_cast<float4*>(to + 4) = *reinterpret_cast<const float4*>(tile + apart);
}

// Four rows of a column of C from row i on, as far as there are any.
template <bool ALIGNED>
__device__ void store(float* column, int i, int m, const float* value) {
  if (ALIGNED) {
    if (i < m)
      *reinterpret_cast<float4*>(column + i) =
          make_float4(value[0], value[1], value[2], value[3]);
  } else {
#pragma unroll
    for (int u = 0; u < 4; ++u)
      if (i + u < m) column[i + u] = value[u];
  }
}

template <bool ALIGNED>
__global__ void __launch_bounds__(THREADS, 2)
    sgemm(const float* A, const float* B, float* C, int m, int n, int k) {
  __shared__ __align__(16) float As[BK][BM + 4], Bs[BK][BN + 4];  // [p][row of A or column of B]
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // In the tile, the first of its rows and of its columns.
  const int thread_row = warp % (BM / WM) * WM + lane / 2 % 8 * 4;
  const int thread_col = warp / (BM / WM) * WN + (lane / 16 * 2 + lane % 2) * 4;
  const int tile_row = blockIdx.x * BM, tile_col = blockIdx.y * BN;
  const int line = threadIdx.x / (BK / 4), q4 = threadIdx.x % (BK / 4) * 4;  // of its float4

  float acc[TN][TM] = {};
  for (int p0 = 0; p0 < k; p0 += BK) {
    const float4 a4 = load_float4<ALIGNED>(A, tile_row + line, m, p0 + q4, k);
    const float4 b4 = load_float4<ALIGNED>(B, tile_col + line, n, p0 + q4, k);
    store_transposed(&As[q4][line], BM + 4, a4);
    store_transposed(&Bs[q4][line], BN + 4, b4);
    __syncthreads();
#pragma unroll
    for (int q = 0; q < BK; ++q) {
      float frag_a[TM], frag_b[TN];
      load_fragment(frag_a, &As[q][thread_row], WM / 2);
      load_fragment(frag_b, &Bs[q][thread_col], WN / 2);
#pragma unroll
      for (int v = 0; v < TN; ++v)
#pragma unroll
        for (int u = 0; u < TM; ++u) acc[v][u] += frag_a[u] * frag_b[v];
    }
    __syncthreads();
  }
#pragma unroll
  for (int v = 0; v < TN; ++v) {
    const int j = tile_col + thread_col + v / 4 * (WN / 2) + v % 4;
    if (j >= n) break;
#pragma unroll
    for (int u = 0; u < TM; u += 4)
      store<ALIGNED>(C + j * size_t(m), tile_row + thread_row + u / 4 * (WM / 2), m, acc[v] + u);
  }
}

bool aligned(const float* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  const bool whole = m % 4 == 0 && k % 4 == 0 && aligned(A) && aligned(B) && aligned(C);
  const dim3 grid((m + BM - 1) / BM, (n + BN - 1) / BN);
  if (whole) sgemm<true><<<grid, THREADS>>>(A, B, C, m, n, k);
  else sgemm<false><<<grid, THREADS>>>(A, B, C, m, n, k);
}
