// Rung 0: FP16 in memory, FP32 on CUDA cores.
//
// Changed:  against sgemm's tiles only the type in memory: elements are FP16, become FP32 on their
//           way into shared memory, and the sum becomes FP16, rounded once, at the end.
// Why:      half the bytes from memory. The products take as many FFMA as in FP32, so this is where
//           a ladder on tensor cores starts: an H200's can do 16 times as many products a cycle.
// Tile:     BM = BN = 64, BK = 16, TM = TN = 4, 256 threads.
// Bound:    FFMA and the loads from shared memory that feed them.
// Source:   rung 13 of sgemm.
// Command:  grade reference/hgemm/00_cuda_cores --lab hgemm
#include "gemm.cuh"

constexpr int BM = 64, BN = 64, BK = 16, TM = 4, TN = 4;
constexpr int THREADS = BM / TM * (BN / TN), ACROSS = BM / TM;  // threads along the rows of C
constexpr int PITCH = BM + 1;  // of a row of a tile; odd, so that columns are spread over the banks
static_assert(BM == BN, "both tiles are loaded in the same way");

// A tile of A or B, transposed: neighbouring threads read neighbours along K.
__device__ void load_tile(float (*tile)[PITCH], const __half* matrix, int first, int lines, int p0,
                          int k) {
  const int p = threadIdx.x % BK;
  for (int line = threadIdx.x / BK; line < BM; line += THREADS / BK) {
    const bool inside = first + line < lines && p0 + p < k;
    tile[p][line] =
        inside ? __half2float(matrix[(first + line) * size_t(k) + p0 + p]) : 0.0f;
  }
}

__global__ void __launch_bounds__(THREADS)
    hgemm(const __half* A, const __half* B, __half* C, int m, int n, int k) {
  __shared__ float As[BK][PITCH], Bs[BK][PITCH];
  const int row = threadIdx.x % ACROSS, column = threadIdx.x / ACROSS;  // every 16th is this thread's
  const int tile_row = blockIdx.x * BM, tile_col = blockIdx.y * BN;
  float acc[TN][TM] = {};
  for (int p0 = 0; p0 < k; p0 += BK) {
    load_tile(As, A, tile_row, m, p0, k);
    load_tile(Bs, B, tile_col, n, p0, k);
    __syncthreads();
#pragma unroll
    for (int p = 0; p < BK; ++p) {
      float a[TM], b[TN];
#pragma unroll
      for (int u = 0; u < TM; ++u) a[u] = As[p][row + u * ACROSS];
#pragma unroll
      for (int v = 0; v < TN; ++v) b[v] = Bs[p][column + v * ACROSS];
#pragma unroll
      for (int v = 0; v < TN; ++v)
#pragma unroll
        for (int u = 0; u < TM; ++u) acc[v][u] += a[u] * b[v];
    }
    __syncthreads();
  }
#pragma unroll
  for (int v = 0; v < TN; ++v)
#pragma unroll
    for (int u = 0; u < TM; ++u) {
      const int i = tile_row + row + u * ACROSS, j = tile_col + column + v * ACROSS;
      if (i < m && j < n) C[i + j * size_t(m)] = __float2half(acc[v][u]);
    }
}

template <>
void run_custom<__half>(thrust::device_vector<__half>& d_A, thrust::device_vector<__half>& d_B,
                        thrust::device_vector<__half>& d_C, const int m, const int n,
                        const int k) {
  const dim3 grid((m + BM - 1) / BM, (n + BN - 1) / BN);
  hgemm<<<grid, THREADS>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
