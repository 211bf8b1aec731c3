// A transposition pass for A and for B, then a product whose tiles lie m-major on both sides, in global
// and in shared memory. BM, BN: tile of C; BK: steps along K of a tile; FRAGMENT: neighbouring elements of
// a side that a thread reads at a time (1: it owns every 16th row and column); COPY: bytes of a copy, or
// of a cp.async with STAGES of 2 or more. STAGES 0: copies go through registers just before their use;
// 1: one tile ahead. TRANSPOSE: edge of the tile that the pass turns round in shared memory; 0: none does.
#include "gemm.cuh"

constexpr int SIDE = 16, THREADS = SIDE * SIDE, TM = BM / SIDE, TN = BN / SIDE;
constexpr int WORDS = COPY / 4, DEPTH = STAGES > 1 ? STAGES : 1;
static_assert(BM * BK % (WORDS * THREADS) == 0 && BN * BK % (WORDS * THREADS) == 0, "whole copies");

// to[column][row] = from[row][column]
__global__ void transpose(const float* from, float* to, int rows, int columns) {
#if TRANSPOSE
  __shared__ float tile[TRANSPOSE][TRANSPOSE + 1];
  const int x = blockIdx.x * TRANSPOSE, y = blockIdx.y * TRANSPOSE;
  for (int i = threadIdx.y; i < TRANSPOSE; i += blockDim.y)
    tile[i][threadIdx.x] = from[size_t(y + i) * columns + x + threadIdx.x];
  __syncthreads();
  for (int i = threadIdx.y; i < TRANSPOSE; i += blockDim.y)
    to[size_t(x + i) * rows + y + threadIdx.x] = tile[threadIdx.x][i];
#else
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += blockDim.y) to[size_t(x) * rows + y + i] = from[size_t(y + i) * columns + x];
#endif
}

struct alignas(COPY) Words {
  float of[WORDS];
};

// The copies of one thread: `WIDTH` elements of each of BK rows, rows `pitch` elements apart.
template <int WIDTH> struct Copies {
  static constexpr int COUNT = WIDTH * BK / (WORDS * THREADS), ACROSS = WIDTH / WORDS;
  Words held[COUNT];
  __device__ static int row(int c) { return (threadIdx.x + c * THREADS) / ACROSS; }
  __device__ static int column(int c) { return (threadIdx.x + c * THREADS) % ACROSS * WORDS; }
  __device__ void load(const float* from, int pitch) {
#pragma unroll
    for (int c = 0; c < COUNT; ++c)
      held[c] = *reinterpret_cast<const Words*>(from + size_t(row(c)) * pitch + column(c));
  }
  __device__ void store(float (&tile)[BK][WIDTH]) const {
#pragma unroll
    for (int c = 0; c < COUNT; ++c) *reinterpret_cast<Words*>(&tile[row(c)][column(c)]) = held[c];
  }
  __device__ static void start(float (&tile)[BK][WIDTH], const float* from, int pitch) {
#pragma unroll
    for (int c = 0; c < COUNT; ++c) {
      const unsigned to = unsigned(__cvta_generic_to_shared(&tile[row(c)][column(c)]));
      const float* source = from + size_t(row(c)) * pitch + column(c);
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(source), "n"(COPY) : "memory");
    }
  }
};

// Element t of a thread's fragment lies this far into the tile.
__device__ int place(int thread, int t) { return (t / FRAGMENT * SIDE + thread) * FRAGMENT + t % FRAGMENT; }

__device__ void multiply(float (&sum)[TN][TM], const float (&As)[BK][BM], const float (&Bs)[BK][BN], int x, int y) {
#pragma unroll
  for (int p = 0; p < BK; ++p) {
    float a[TM], b[TN];
#pragma unroll
    for (int t = 0; t < TM; ++t) a[t] = As[p][place(x, t)];
#pragma unroll
    for (int t = 0; t < TN; ++t) b[t] = Bs[p][place(y, t)];
#pragma unroll
    for (int j = 0; j < TN; ++j)
#pragma unroll
      for (int i = 0; i < TM; ++i) sum[j][i] += a[i] * b[j];
  }
}

// A is k rows of m, B is k rows of n.
__global__ void __launch_bounds__(THREADS, 2) product(const float* A, const float* B, float* C, int m, int n, int k) {
  __shared__ __align__(16) float As[DEPTH][BK][BM], Bs[DEPTH][BK][BN];
  const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
  float sum[TN][TM] = {};
  A += blockIdx.x * BM;
  B += blockIdx.y * BN;
#if STAGES > 1
  for (int s = 0; s < DEPTH - 1; ++s) {
    Copies<BM>::start(As[s], A + size_t(s) * BK * m, m);
    Copies<BN>::start(Bs[s], B + size_t(s) * BK * n, n);
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  const int tiles = k / BK;
  for (int t = 0; t < tiles; ++t) {
    asm volatile("cp.async.wait_group %0;" ::"n"(DEPTH - 2) : "memory");
    __syncthreads();
    if (t + DEPTH - 1 < tiles) {
      const int s = t + DEPTH - 1;
      Copies<BM>::start(As[s % DEPTH], A + size_t(s) * BK * m, m);
      Copies<BN>::start(Bs[s % DEPTH], B + size_t(s) * BK * n, n);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    multiply(sum, As[t % DEPTH], Bs[t % DEPTH], x, y);
  }
#else
  Copies<BM> a;
  Copies<BN> b;
  if (STAGES) a.load(A, m), b.load(B, n);
  for (int p = 0; p < k; p += BK) {
    if (!STAGES) a.load(A + size_t(p) * m, m), b.load(B + size_t(p) * n, n);
    a.store(As[0]), b.store(Bs[0]);
    __syncthreads();
    const int next = p + BK < k ? p + BK : p;
    if (STAGES) a.load(A + size_t(next) * m, m), b.load(B + size_t(next) * n, n);
    multiply(sum, As[0], Bs[0], x, y);
    __syncthreads();
  }
#endif
#pragma unroll
  for (int j = 0; j < TN; ++j)
#pragma unroll
    for (int i = 0; i < TM; ++i)
      C[size_t(blockIdx.y * BN + place(y, j)) * m + blockIdx.x * BM + place(x, i)] = sum[j][i];
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  float *A = nullptr, *B = nullptr;
  if (cudaMalloc(&A, sizeof(float) * m * k) != cudaSuccess || cudaMalloc(&B, sizeof(float) * n * k) != cudaSuccess)
    return;
  constexpr int EDGE = TRANSPOSE ? TRANSPOSE : 32;
  transpose<<<dim3(k / EDGE, m / EDGE), dim3(EDGE, 8)>>>(d_A.data().get(), A, m, k);
  transpose<<<dim3(k / EDGE, n / EDGE), dim3(EDGE, 8)>>>(d_B.data().get(), B, n, k);
  product<<<dim3(m / BM, n / BN), THREADS>>>(A, B, d_C.data().get(), m, n, k);
  cudaFree(A);
  cudaFree(B);
}
