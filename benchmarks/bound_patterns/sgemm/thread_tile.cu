// A thread computes TM by TN elements of a tile of BM by BN. GROUP: neighbouring rows and columns that a
// thread owns at a time. WIDE: floats of a load from global memory, along K. M_MAJOR 1: tiles are stored
// [p][row], 0: [row][p]; PAD: floats added to each row of a tile. WARP 1: the threads of a warp cover 8 by 4
// places of the tile, 0: a part of one row of places. BUFFERS 2: the next tile goes into a second buffer;
// AHEAD 1: it is loaded into registers before this one is used. SLICES: parts of K, added with atomics where
// there are several, or with WORKSPACE 1 by a second kernel. Sizes must be multiples of the tile.
#include "gemm.cuh"

#ifndef WORKSPACE
#define WORKSPACE 0
#endif

constexpr int X = BM / TM, Y = BN / TN, THREADS = X * Y;
constexpr int LOADS_A = BM * BK / (WIDE * THREADS), LOADS_B = BN * BK / (WIDE * THREADS);
constexpr int GM = GROUP < TM ? GROUP : TM, GN = GROUP < TN ? GROUP : TN;
static_assert(BM * BK % (WIDE * THREADS) == 0 && BN * BK % (WIDE * THREADS) == 0, "whole loads");

struct alignas(4 * WIDE) Words {
  float of[WIDE];
};

#if M_MAJOR
template <int EDGE> using Tile = float[BK][EDGE + PAD];
#define AT(tile, line, p) tile[p][line]
#else
template <int EDGE> using Tile = float[EDGE][BK + PAD];
#define AT(tile, line, p) tile[line][p]
#endif

template <int COUNT> __device__ void load(Words (&held)[COUNT], const float* from, int k) {
#pragma unroll
  for (int c = 0; c < COUNT; ++c) {
    const int at = (threadIdx.x + c * THREADS) * WIDE;
    held[c] = *reinterpret_cast<const Words*>(from + size_t(at / BK) * k + at % BK);
  }
}

template <int EDGE, int COUNT> __device__ void store(Tile<EDGE>& tile, const Words (&held)[COUNT]) {
#pragma unroll
  for (int c = 0; c < COUNT; ++c)
#pragma unroll
    for (int w = 0; w < WIDE; ++w) {
      const int at = (threadIdx.x + c * THREADS) * WIDE + w;
      AT(tile, at / BK, at % BK) = held[c].of[w];
    }
}

__global__ void __launch_bounds__(THREADS) product(const float* A, const float* B, float* C, int m, int n, int k) {
  __shared__ __align__(16) Tile<BM> As[BUFFERS];
  __shared__ __align__(16) Tile<BN> Bs[BUFFERS];
#if WARP
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int x = warp % (X / 8) * 8 + lane % 8, y = warp / (X / 8) * 4 + lane / 8;
#else
  const int x = threadIdx.x % X, y = threadIdx.x / X;
#endif
  const int row0 = blockIdx.x * BM, col0 = blockIdx.y * BN, part = k / SLICES;
  A += size_t(row0) * k + blockIdx.z * part;
  B += size_t(col0) * k + blockIdx.z * part;
  float sum[TN][TM] = {};
  Words a4[LOADS_A], b4[LOADS_B];
  if (AHEAD) load(a4, A, k), load(b4, B, k);
  for (int p0 = 0, now = 0; p0 < part; p0 += BK, now = (now + 1) % BUFFERS) {
    if (!AHEAD) load(a4, A + p0, k), load(b4, B + p0, k);
    store<BM>(As[now], a4);
    store<BN>(Bs[now], b4);
    __syncthreads();
    if (AHEAD && p0 + BK < part) load(a4, A + p0 + BK, k), load(b4, B + p0 + BK, k);
#pragma unroll
    for (int p = 0; p < BK; ++p) {
      float a[TM], b[TN];
#pragma unroll
      for (int t = 0; t < TM; ++t) a[t] = AT(As[now], (t / GM * X + x) * GM + t % GM, p);
#pragma unroll
      for (int t = 0; t < TN; ++t) b[t] = AT(Bs[now], (t / GN * Y + y) * GN + t % GN, p);
#pragma unroll
      for (int j = 0; j < TN; ++j)
#pragma unroll
        for (int i = 0; i < TM; ++i) sum[j][i] += a[i] * b[j];
    }
    if (BUFFERS == 1) __syncthreads();
  }
#pragma unroll
  for (int j = 0; j < TN; ++j)
#pragma unroll
    for (int i = 0; i < TM; ++i) {
      const int row = row0 + (i / GM * X + x) * GM + i % GM, col = col0 + (j / GN * Y + y) * GN + j % GN;
      if (WORKSPACE) C[(size_t(blockIdx.z) * n + col) * m + row] = sum[j][i];
      else if (SLICES == 1) C[size_t(col) * m + row] = sum[j][i];
      else atomicAdd(&C[size_t(col) * m + row], sum[j][i]);
    }
}

__global__ void add(const float* slices, float* C, int count) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
#pragma unroll
  for (int slice = 0; slice < SLICES; ++slice) sum += slices[size_t(slice) * count + at];
  C[at] = sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  float *C = d_C.data().get(), *to = C;
  static float* slices = nullptr;
  if (WORKSPACE && slices == nullptr) cudaMalloc(&slices, sizeof(float) * SLICES * m * n);
  if (WORKSPACE) to = slices;
  else if (SLICES > 1) cudaMemset(C, 0, sizeof(float) * m * n);
  product<<<dim3(m / BM, n / BN, SLICES), THREADS>>>(d_A.data().get(), d_B.data().get(), to, m, n, k);
  if (WORKSPACE) add<<<m * n / 256, 256>>>(slices, C, m * n);
}
