// Rung 8: the inner loop as the compiler likes it.
//
// Changed:  `#pragma unroll 1`, which rungs 5 to 7 have before the loop over the tile, is gone.
// Why:      the number of steps is a constant and the body is short, so nvcc unrolls the loop
//           completely: no counter, comparison or branch for each FMA, offsets become constants in
//           the load instructions, and several shared loads may start before the first FMA.
// Tile:     BM = BN = BK = T in {8, 16, 32}, TM = TN = 1, 8*T*(T + 1) bytes of shared memory.
// Bound:    shared loads, now almost alone: about two requests for each FMA at the PTX level.
// Command:  grade reference/sgemm/08_compiler_unrolls
#include "gemm.cuh"

template <int T>
__global__ void sgemm(const float* A, const float* B, float* C, int m, int n, int k) {
  __shared__ float As[T][T + 1], Bs[T][T + 1];  // [row of A or column of B][p]
  const int x = threadIdx.x, y = threadIdx.y;
  const int row0 = blockIdx.x * T, col0 = blockIdx.y * T;
  const int i = row0 + x, j = col0 + y;  // the element of C

  float sum = 0.0f;
  for (int p0 = 0; p0 < k; p0 += T) {
    const int p = p0 + x;  // while loading, x runs along K
    As[y][x] = row0 + y < m && p < k ? A[(row0 + y) * size_t(k) + p] : 0.0f;
    Bs[y][x] = col0 + y < n && p < k ? B[p + (col0 + y) * size_t(k)] : 0.0f;
    __syncthreads();
    for (int q = 0; q < T; ++q) sum += As[x][q] * Bs[y][q];
    __syncthreads();
  }
  if (i < m && j < n) C[i + j * size_t(m)] = sum;
}

template <int T>
void launch(const float* A, const float* B, float* C, int m, int n, int k) {
  const dim3 grid((m + T - 1) / T, (n + T - 1) / T);
  sgemm<T><<<grid, dim3(T, T)>>>(A, B, C, m, n, k);
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  const int side = m < n ? m : n;
  if (side <= 8) launch<8>(A, B, C, m, n, k);
  else if (side <= 16) launch<16>(A, B, C, m, n, k);
  else launch<32>(A, B, C, m, n, k);
}
