// Rung 18: tiles transposed in shared memory.
//
// Changed:  As and Bs are [q][line] instead of [line][q]; a thread scatters its float4 over four
//           rows of the tile, and its columns become 4y and 64 + 4y, in fours like its rows.
// Why:      the four values that a thread needs together now lie side by side: one LDS.128
//           instead of four loads, 4 instructions for each 64 FMAs instead of 16. The rows are
//           132 floats long: a multiple of 4 keeps the float4 aligned, and 4 * 132 = 16 (mod 32)
//           spreads the scatter of a warp (16 lines, 2 places along K) over all banks.
// Tile:     BM = BN = 128, BK = 8, TM = TN = 8, 8.25 KiB of shared memory, 256 threads.
// Bound:    instruction issue and latency: only the other block overlaps a tile's loads.
// Command:  grade reference/sgemm/18_transposed
#include <cstdint>

#include "gemm.cuh"

constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8;
constexpr int X = BM / TM, Y = BN / TN, THREADS = X * Y;
static_assert(BM == BN && BM * BK == 4 * THREADS, "a thread loads one float4 of each tile");

// from[line][p .. p + 3], zero outside the `lines` by `k` of `from`.
template <bool ALIGNED>
__device__ float4 load(const float* from, int line, int lines, int p, int k) {
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
__device__ void scatter(float* tile, int pitch, float4 v) {
  tile[0] = v.x;
  tile[pitch] = v.y;
  tile[2 * pitch] = v.z;
  tile[3 * pitch] = v.w;
}

// to[0 .. 3] and to[4 .. 7] from two places of a tile, `apart` floats from one another.
__device__ void fours(float (&to)[8], const float* tile, int apart) {
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
  const int x = threadIdx.x / Y, y = threadIdx.x % Y;
  const int row0 = blockIdx.x * BM, col0 = blockIdx.y * BN;
  const int line = threadIdx.x / (BK / 4), q4 = threadIdx.x % (BK / 4) * 4;  // what it loads

  float acc[TN][TM] = {};
  for (int p0 = 0; p0 < k; p0 += BK) {
    const float4 a4 = load<ALIGNED>(A, row0 + line, m, p0 + q4, k);
    const float4 b4 = load<ALIGNED>(B, col0 + line, n, p0 + q4, k);
    scatter(&As[q4][line], BM + 4, a4);
    scatter(&Bs[q4][line], BN + 4, b4);
    __syncthreads();
#pragma unroll
    for (int q = 0; q < BK; ++q) {
      float a[TM], b[TN];
      fours(a, &As[q][4 * x], BM / 2);
      fours(b, &Bs[q][4 * y], BN / 2);
#pragma unroll
      for (int v = 0; v < TN; ++v)
#pragma unroll
        for (int u = 0; u < TM; ++u) acc[v][u] += a[u] * b[v];
    }
    __syncthreads();
  }
#pragma unroll
  for (int v = 0; v < TN; ++v) {
    const int j = col0 + v / 4 * (BN / 2) + 4 * y + v % 4;
    if (j >= n) break;
#pragma unroll
    for (int u = 0; u < TM; u += 4)
      store<ALIGNED>(C + j * size_t(m), row0 + u / 4 * (BM / 2) + 4 * x, m, acc[v] + u);
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
