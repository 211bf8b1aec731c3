// mma.sync on fragments from ldmatrix. A block makes BM by BN, a warp WM by WN, BK deep. STAGES: tiles in
// shared memory; 1: through registers, just before their use; 2 or more: cp.async, all but one under way.
// PAD: elements added to each line of a tile; SWIZZLE 1: chunks of a line change places by an XOR with the
// line. BAND: columns of tiles that are made together; 0: all. AHEAD 1: fragments are loaded one step ahead.
#ifdef BF16
using Element = __nv_bfloat16;
using Pair = __nv_bfloat162;
#define TYPES "f32.bf16.bf16.f32"
#else
using Element = __half;
using Pair = __half2;
#define TYPES "f32.f16.f16.f32"
#endif

constexpr int ACROSS = BM / WM, THREADS = 32 * ACROSS * (BN / WN), PITCH = BK + PAD, CHUNK = 8, CHUNKS = BK / CHUNK;
constexpr int TILE = (BM + BN) * PITCH, SHARED_BYTES = STAGES * TILE * 2, MS = WM / 16, NS = WN / 8;
static_assert(NS % 2 == 0 && BM * CHUNKS % THREADS == 0 && BN * CHUNKS % THREADS == 0, "whole loads");

__device__ int place(int line, int chunk) {
  return line * PITCH + (SWIZZLE ? chunk ^ line * CHUNKS / 8 % CHUNKS : chunk) * CHUNK;
}

template <int LINES> __device__ void copy(Element* tile, const Element* from, int k) {
#pragma unroll
  for (int c = 0; c < LINES * CHUNKS / THREADS; ++c) {
    const int at = threadIdx.x + c * THREADS, line = at / CHUNKS, chunk = at % CHUNKS;
    Element* to = tile + place(line, chunk);
    const Element* chunk_at = from + size_t(line) * k + chunk * CHUNK;
#if STAGES > 1
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(unsigned(__cvta_generic_to_shared(to))), "l"(chunk_at)
                 : "memory");
#else
    *reinterpret_cast<int4*>(to) = *reinterpret_cast<const int4*>(chunk_at);
#endif
  }
}

__device__ void load(unsigned (&to)[4], const Element* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(unsigned(__cvta_generic_to_shared(row)))
               : "memory");
}

// Of one step of 16 along K.
struct Fragments {
  unsigned a[MS][4], b[NS / 2][4];
  __device__ void load_all(const Element* As, const Element* Bs, int row, int column, int step) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < MS; ++i) load(a[i], As + place(row + i * 16 + lane % 16, step * 2 + lane / 16));
#pragma unroll
    for (int j = 0; j < NS / 2; ++j)
      load(b[j], Bs + place(column + j * 16 + lane / 16 * 8 + lane % 8, step * 2 + lane / 8 % 2));
  }
  __device__ void multiply(float (&sums)[MS][NS][4]) const {
#pragma unroll
    for (int i = 0; i < MS; ++i)
#pragma unroll
      for (int j = 0; j < NS; ++j) {
        float(&s)[4] = sums[i][j];
        asm("mma.sync.aligned.m16n8k16.row.col." TYPES
            " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
            : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j / 2][j % 2 * 2]),
              "r"(b[j / 2][j % 2 * 2 + 1]));
      }
  }
};

__global__ void __launch_bounds__(THREADS) product(const Element* A, const Element* B, Element* C, int m, int n, int k) {
  extern __shared__ __align__(128) Element shared[];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = warp % ACROSS * WM, column = warp / ACROSS * WN;
#if BAND
  const int band = min(BAND, n / BN), turn = blockIdx.x / (band * (m / BM)), within = blockIdx.x % (band * (m / BM));
  const int x = within / band, y = turn * band + within % band;
#else
  const int x = blockIdx.x % (m / BM), y = blockIdx.x / (m / BM);
#endif
  A += size_t(x) * BM * k;
  B += size_t(y) * BN * k;
  const int tiles = k / BK;
  const auto start = [&](int t) {
    Element* tile = shared + t % STAGES * TILE;
    if (t < tiles) copy<BM>(tile, A + t * BK, k), copy<BN>(tile + BM * PITCH, B + t * BK, k);
#if STAGES > 1
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
  };
  for (int t = 0; t < STAGES - 1; ++t) start(t);
  float sums[MS][NS][4] = {};
  for (int t = 0; t < tiles; ++t) {
#if STAGES > 1
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    __syncthreads();
    start(t + STAGES - 1);
#else
    __syncthreads();
    start(t);
    __syncthreads();
#endif
    const Element *As = shared + t % STAGES * TILE, *Bs = As + BM * PITCH;
    Fragments held[2];
    held[0].load_all(As, Bs, row, column, 0);
#pragma unroll
    for (int step = 0; step < BK / 16; ++step) {
      if (AHEAD && step + 1 < BK / 16) held[(step + 1) % 2].load_all(As, Bs, row, column, step + 1);
      held[step % 2].multiply(sums);
      if (!AHEAD && step + 1 < BK / 16) held[(step + 1) % 2].load_all(As, Bs, row, column, step + 1);
    }
  }
  C += size_t(y) * BN * m + x * BM;
#pragma unroll
  for (int i = 0; i < MS; ++i)
#pragma unroll
    for (int j = 0; j < NS; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        C[size_t(column + j * 8 + lane % 4 * 2 + e % 2) * m + row + i * 16 + lane / 4 + e / 2 * 8] =
            Element(sums[i][j][e]);
}

template <>
void run_custom<Element>(thrust::device_vector<Element>& d_A, thrust::device_vector<Element>& d_B,
                         thrust::device_vector<Element>& d_C, const int m, const int n, const int k) {
  cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
  product<<<m / BM * (n / BN), THREADS, SHARED_BYTES>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
