// Tiles come by cp.async, STAGES - 1 ahead. COPY 4: element by element, so that a tile can be stored
// [p][row] with GROUP neighbouring elements for each thread; 16: four along K, stored [row][p] with PAD floats
// added, and read four steps along K at a time. Sizes must be multiples of the tile; at least STAGES tiles.
#include "gemm.cuh"

constexpr int SIDE = 16, THREADS = SIDE * SIDE, TM = BM / SIDE, TN = BN / SIDE, WORDS = COPY / 4;

#if COPY == 4
template <int EDGE> using Tile = float[BK][EDGE + PAD];
#define AT(tile, line, p) tile[p][line]
constexpr int STEP = 1;
#else
template <int EDGE> using Tile = float[EDGE][BK + PAD];
#define AT(tile, line, p) tile[line][p]
constexpr int STEP = 4;
#endif

template <int EDGE> __device__ void start(Tile<EDGE>& tile, const float* from, int k) {
#pragma unroll
  for (int at = threadIdx.x * WORDS; at < EDGE * BK; at += THREADS * WORDS) {
    const unsigned to = unsigned(__cvta_generic_to_shared(&AT(tile, at / BK, at % BK)));
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from + size_t(at / BK) * k + at % BK),
                 "n"(COPY)
                 : "memory");
  }
}

__device__ int place(int thread, int t) { return (t / GROUP * SIDE + thread) * GROUP + t % GROUP; }

__global__ void __launch_bounds__(THREADS) product(const float* A, const float* B, float* C, int m, int n, int k) {
  __shared__ __align__(16) Tile<BM> As[STAGES];
  __shared__ __align__(16) Tile<BN> Bs[STAGES];
  const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
  A += size_t(blockIdx.x) * BM * k;
  B += size_t(blockIdx.y) * BN * k;
  for (int s = 0; s < STAGES - 1; ++s) {
    start<BM>(As[s], A + s * BK, k);
    start<BN>(Bs[s], B + s * BK, k);
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  float sum[TN][TM] = {};
  for (int t = 0; t < k / BK; ++t) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    __syncthreads();
    if (const int s = t + STAGES - 1; s < k / BK) {
      start<BM>(As[s % STAGES], A + s * BK, k);
      start<BN>(Bs[s % STAGES], B + s * BK, k);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    const auto& a_tile = As[t % STAGES];
    const auto& b_tile = Bs[t % STAGES];
#pragma unroll
    for (int p = 0; p < BK; p += STEP) {
      float a[TM][STEP], b[TN][STEP];
#pragma unroll
      for (int u = 0; u < STEP; ++u) {
#pragma unroll
        for (int i = 0; i < TM; ++i) a[i][u] = AT(a_tile, place(x, i), p + u);
#pragma unroll
        for (int j = 0; j < TN; ++j) b[j][u] = AT(b_tile, place(y, j), p + u);
      }
#pragma unroll
      for (int u = 0; u < STEP; ++u)
#pragma unroll
        for (int j = 0; j < TN; ++j)
#pragma unroll
          for (int i = 0; i < TM; ++i) sum[j][i] += a[i][u] * b[j][u];
    }
  }
#pragma unroll
  for (int j = 0; j < TN; ++j)
#pragma unroll
    for (int i = 0; i < TM; ++i)
      C[size_t(blockIdx.y * BN + place(y, j)) * m + blockIdx.x * BM + place(x, i)] = sum[j][i];
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  product<<<dim3(m / BM, n / BN), THREADS>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
