// Rung 17 (a trap): half of the threads load A, the other half B.
//
// Changed:  a thread loads two float4 of one matrix, 64 lines apart, instead of one of each. Which
//           one it is depends on the warp alone, so no warp diverges.
// Why:      one matrix has one pointer, one length and one comparison along K. But there was little
//           to save: the main loop has 639 instructions in rung 16 and 640 here (nvcc 13.0, sm_90),
//           with the same loads and stores. It pays where a thread loads more of each matrix than
//           it can keep pointers for.
// Tile:     BM = BN = 128, BK = 8, TM = TN = 8, 9 KiB of shared memory, 256 threads.
// Bound:    shared loads, as in rung 16.
// Command:  grade reference/sgemm/17_split_loading
#include <cstdint>

#include "gemm.cuh"

constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8;
constexpr int X = BM / TM, Y = BN / TN, THREADS = X * Y;
constexpr int HALF = THREADS / 2, STEP = HALF / (BK / 4);  // lines between a thread's two float4
static_assert(BM == BN && BM == 2 * STEP, "a thread loads two float4 of one tile");

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
      *reinterpret_cast<float4*>(column + i) = make_float4(value[0], value[1], value[2], value[3]);
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
  // The first half of the threads loads A, the second B: whole warps, which do not diverge.
  const bool first_half = threadIdx.x < HALF;
  const float* from = first_half ? A : B;
  const int lines = first_half ? m : n, line0 = first_half ? row0 : col0;
  const int line = threadIdx.x % HALF / (BK / 4), q4 = threadIdx.x % (BK / 4) * 4;
  float (*tile)[BK + 1] = (first_half ? As : Bs) + line;

  float acc[TN][TM] = {};
  for (int p0 = 0; p0 < k; p0 += BK) {
    float4 v[2];
#pragma unroll
    for (int r = 0; r < 2; ++r)
      v[r] = load<ALIGNED>(from, line0 + line + r * STEP, lines, p0 + q4, k);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float* to = tile[r * STEP] + q4;
      to[0] = v[r].x, to[1] = v[r].y, to[2] = v[r].z, to[3] = v[r].w;
    }
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
