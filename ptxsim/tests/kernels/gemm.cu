// Every thread makes TM × TN elements, strided by the block; tiles lie in dynamic shared memory.
extern __shared__ float memory[];

template <int TM, int TN, int BK>
__device__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int bm = blockDim.x * TM, bn = blockDim.y * TN, threads = blockDim.x * blockDim.y;
  const int row0 = blockIdx.x * bm, col0 = blockIdx.y * bn;
  const int t = threadIdx.y * blockDim.x + threadIdx.x;
  float *As = memory, *Bs = memory + bm * BK;
  float acc[TN][TM] = {};
  for (int p0 = 0; p0 < k; p0 += BK) {
    for (int e = t; e < bm * BK; e += threads) {
      const int i = row0 + e / BK, p = p0 + e % BK;
      As[e] = i < m && p < k ? A[i * k + p] : 0.0f;
    }
    for (int e = t; e < bn * BK; e += threads) {
      const int j = col0 + e / BK, p = p0 + e % BK;
      Bs[e] = j < n && p < k ? B[p + j * k] : 0.0f;
    }
    __syncthreads();
    for (int q = 0; q < BK; ++q)
      for (int y = 0; y < TN; ++y)
        for (int x = 0; x < TM; ++x)
          acc[y][x] += As[(threadIdx.x + x * blockDim.x) * BK + q] *
                       Bs[(threadIdx.y + y * blockDim.y) * BK + q];
    __syncthreads();
  }
  for (int y = 0; y < TN; ++y)
    for (int x = 0; x < TM; ++x) {
      const int i = row0 + threadIdx.x + x * blockDim.x, j = col0 + threadIdx.y + y * blockDim.y;
      if (i < m && j < n) C[i + j * m] = acc[y][x];
    }
}

#define GEMM(TM, TN, BK)                                                                       \
  extern "C" __global__ void gemm_##TM##_##TN##_##BK(const float* A, const float* B, float* C, \
                                                     int m, int n, int k) {                    \
    gemm<TM, TN, BK>(A, B, C, m, n, k);                                                        \
  }
GEMM(1, 1, 8)
GEMM(2, 1, 4)
GEMM(3, 2, 5)
GEMM(4, 4, 8)
GEMM(1, 8, 16)
