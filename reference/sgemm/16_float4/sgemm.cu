// Rung 16 (a trap): global memory in float4.
//
// Changed:  a thread loads four neighbours along K with one load of 16 bytes, and stores four
//           neighbours of a column of C with one store. For that it owns 4 + 4 consecutive rows,
//           4x and 64 + 4x, and neighbouring lanes take neighbouring columns. If k or m is no
//           multiple of 4, or an address none of 16, another instance moves single elements.
// Why:      a quarter of the instructions, addresses and comparisons for the same bytes. Two lanes
//           fill a sector of 32 bytes, so no store moves part of one.
// Tile:     BM = BN = 128, BK = 8, TM = TN = 8, 9 KiB of shared memory, 256 threads.
// Bound:    shared loads, as in rung 15. Those of B are still one float each; the compiler joins
//           those of A, because four lines of nine floats happen to be a multiple of 16 bytes.
// Measured: slower than rung 15 on an H200 (30.1 against 32.7 TFLOPS at 8192). Wide loads from
//           global memory alone gain nothing while shared memory is read word by word; the next
//           rung needs them.
// Command:  grade reference/sgemm/16_float4
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
  __shared__ float As[BM][BK + 1], Bs[BN][BK + 1];  // [row of A or column of B][p]
  const int x = threadIdx.x / Y, y = threadIdx.x % Y;
  const int row0 = blockIdx.x * BM, col0 = blockIdx.y * BN;
  const int line = threadIdx.x / (BK / 4), q4 = threadIdx.x % (BK / 4) * 4;  // what it loads

  float acc[TN][TM] = {};
  for (int p0 = 0; p0 < k; p0 += BK) {
    const float4 a4 = load<ALIGNED>(A, row0 + line, m, p0 + q4, k);
    const float4 b4 = load<ALIGNED>(B, col0 + line, n, p0 + q4, k);
    As[line][q4] = a4.x, As[line][q4 + 1] = a4.y, As[line][q4 + 2] = a4.z, As[line][q4 + 3] = a4.w;
    Bs[line][q4] = b4.x, Bs[line][q4 + 1] = b4.y, Bs[line][q4 + 2] = b4.z, Bs[line][q4 + 3] = b4.w;
    __syncthreads();
#pragma unroll
    for (int q = 0; q < BK; ++q) {
      float a[TM], b[TN];
#pragma unroll
      for (int u = 0; u < TM; ++u) a[u] = As[u / 4 * (BM / 2) + 4 * x + u % 4][q];
#pragma unroll
      for (int v = 0; v < TN; ++v) b[v] = Bs[y + v * Y][q];
#pragma unroll
      for (int v = 0; v < TN; ++v)
#pragma unroll
        for (int u = 0; u < TM; ++u) acc[v][u] += a[u] * b[v];
    }
    __syncthreads();
  }
#pragma unroll
  for (int v = 0; v < TN; ++v) {
    const int j = col0 + y + v * Y;
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
