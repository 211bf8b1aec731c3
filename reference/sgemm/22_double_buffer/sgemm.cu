// Rung 22 (a trap): two buffers in shared memory, one barrier for each tile.
//
// Changed:  the tile that waits in registers goes to the buffer that is not being read, then the
//           two swap.
// Why:      with one buffer a tile can't be written before all have read the last, nor read before
//           all have written: two barriers for each tile. With two, a thread that has multiplied
//           its tile writes the next one at once, and one barrier is enough.
// Tile:     BM = BN = 128, BK = 8, warp 64 x 32, TM = TN = 8, 256 threads, 16.5 KiB of
//           shared memory.
// Bound:    instruction issue: every instruction in the loop that is no FMA takes an FMA's slot.
// Measured: a little slower than rung 21 on an H200 (47.5 against 48.2 TFLOPS at 8192): with two
//           blocks on a multiprocessor the other one works while this one waits. The next rung
//           needs the second buffer.
// Command:  grade reference/sgemm/22_double_buffer
#include <cstdint>

#include "gemm.cuh"

constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8;
constexpr int WM = 64, WN = 32;  // the warp tile
constexpr int THREADS = BM / TM * (BN / TN);
static_assert(BM == BN && BM * BK == 4 * THREADS, "a thread loads one float4 of each tile");

// Four values along K, zero beyond the `left` that the line still has.
template <bool ALIGNED>
__device__ float4 load_float4(const float* from, int left) {
  float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (ALIGNED) {
    if (left > 0) v = *reinterpret_cast<const float4*>(from);
  } else {
    if (left > 0) v.x = from[0];
    if (left > 1) v.y = from[1];
    if (left > 2) v.z = from[2];
    if (left > 3) v.w = from[3];
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
  __shared__ __align__(16) float As[2][BK][BM + 4], Bs[2][BK][BN + 4];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // In the tile, the first of its rows and of its columns.
  const int thread_row = warp % (BM / WM) * WM + lane / 2 % 8 * 4;
  const int thread_col = warp / (BM / WM) * WN + (lane / 16 * 2 + lane % 2) * 4;
  const int tile_row = blockIdx.x * BM, tile_col = blockIdx.y * BN;
  const int line = threadIdx.x / (BK / 4), q4 = threadIdx.x % (BK / 4) * 4;  // of its float4
  const float* a_from = A + min(tile_row + line, m - 1) * size_t(k) + q4;
  const float* b_from = B + min(tile_col + line, n - 1) * size_t(k) + q4;
  int left = k - q4;  // of the line, from there on

  float acc[TN][TM] = {};
  store_transposed(&As[0][q4][line], BM + 4, load_float4<ALIGNED>(a_from, left));
  store_transposed(&Bs[0][q4][line], BN + 4, load_float4<ALIGNED>(b_from, left));
  __syncthreads();
  int buffer = 0;
#pragma unroll 2  // makes the number of the buffer a constant in either half
  for (int p0 = 0; p0 < k; p0 += BK, buffer ^= 1) {
    left -= BK;
    const float4 a4 = load_float4<ALIGNED>(a_from += BK, left);
    const float4 b4 = load_float4<ALIGNED>(b_from += BK, left);
    float frag_a[2][TM], frag_b[2][TN];  // for q and for q + 1
    load_fragment(frag_a[0], &As[buffer][0][thread_row], WM / 2);
    load_fragment(frag_b[0], &Bs[buffer][0][thread_col], WN / 2);
#pragma unroll
    for (int q = 0; q < BK; ++q) {
      if (q + 1 < BK) {
        load_fragment(frag_a[(q + 1) % 2], &As[buffer][q + 1][thread_row], WM / 2);
        load_fragment(frag_b[(q + 1) % 2], &Bs[buffer][q + 1][thread_col], WN / 2);
      }
#pragma unroll
      for (int v = 0; v < TN; ++v)
#pragma unroll
        for (int u = 0; u < TM; ++u) acc[v][u] += frag_a[q % 2][u] * frag_b[q % 2][v];
    }
    store_transposed(&As[buffer ^ 1][q4][line], BM + 4, a4);
    store_transposed(&Bs[buffer ^ 1][q4][line], BN + 4, b4);
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
