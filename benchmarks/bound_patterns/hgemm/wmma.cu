// wmma. A warp makes WM by WN fragments of 16 by 16, of a tile of BM by BN; SHARED 0: its fragments come
// straight from global memory; 1: from tiles in shared memory, BK deep, whose lines are PAD elements longer
// than that. WIDE: elements of a load from global memory.
#include <mma.h>

using namespace nvcuda;

#ifdef BF16
using Element = __nv_bfloat16;
#else
using Element = __half;
#endif

constexpr int ACROSS = BM / 16 / WM, WARPS = ACROSS * (BN / 16 / WN), THREADS = 32 * WARPS, PITCH = BK + PAD;

using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;
using A16 = wmma::fragment<wmma::matrix_a, 16, 16, 16, Element, wmma::row_major>;
using B16 = wmma::fragment<wmma::matrix_b, 16, 16, 16, Element, wmma::col_major>;

struct alignas(2 * WIDE) Words {
  Element of[WIDE];
};

template <int LINES> __device__ void copy(Element* tile, const Element* from, int k) {
#pragma unroll
  for (int at = threadIdx.x * WIDE; at < LINES * BK; at += THREADS * WIDE)
    *reinterpret_cast<Words*>(tile + at / BK * PITCH + at % BK) =
        *reinterpret_cast<const Words*>(from + size_t(at / BK) * k + at % BK);
}

__global__ void __launch_bounds__(THREADS) product(const Element* A, const Element* B, Element* C, int m, int n, int k) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = warp % ACROSS * WM * 16, column = warp / ACROSS * WN * 16;
  A += size_t(blockIdx.x) * BM * k;
  B += size_t(blockIdx.y) * BN * k;
  Sums sums[WM][WN];
#pragma unroll
  for (int i = 0; i < WM; ++i)
#pragma unroll
    for (int j = 0; j < WN; ++j) wmma::fill_fragment(sums[i][j], 0.0f);

#if SHARED
  __shared__ __align__(128) Element As[BM * PITCH], Bs[BN * PITCH];
#endif
  for (int p0 = 0; p0 < k; p0 += BK) {
#if SHARED
    copy<BM>(As, A + p0, k);
    copy<BN>(Bs, B + p0, k);
    __syncthreads();
    const Element *a_lines = As, *b_lines = Bs;
    const int pitch = PITCH;
#else
    const Element *a_lines = A + p0, *b_lines = B + p0;
    const int pitch = k;
#endif
#pragma unroll
    for (int p = 0; p < BK; p += 16) {
      A16 a[WM];
      B16 b[WN];
#pragma unroll
      for (int i = 0; i < WM; ++i) wmma::load_matrix_sync(a[i], a_lines + size_t(row + i * 16) * pitch + p, pitch);
#pragma unroll
      for (int j = 0; j < WN; ++j) wmma::load_matrix_sync(b[j], b_lines + size_t(column + j * 16) * pitch + p, pitch);
#pragma unroll
      for (int i = 0; i < WM; ++i)
#pragma unroll
        for (int j = 0; j < WN; ++j) wmma::mma_sync(sums[i][j], a[i], b[j], sums[i][j]);
    }
#if SHARED
    __syncthreads();
#endif
  }
  __shared__ __align__(32) float results[WARPS][16 * 16];
#pragma unroll
  for (int i = 0; i < WM; ++i)
#pragma unroll
    for (int j = 0; j < WN; ++j) {
      wmma::store_matrix_sync(results[warp], sums[i][j], 16, wmma::mem_col_major);
      __syncwarp();
      Element* corner = C + (size_t(blockIdx.y) * BN + column + j * 16) * m + blockIdx.x * BM + row + i * 16;
      for (int at = lane; at < 16 * 16; at += 32) corner[size_t(at / 16) * m + at % 16] = Element(results[warp][at]);
      __syncwarp();
    }
}

template <>
void run_custom<Element>(thrust::device_vector<Element>& d_A, thrust::device_vector<Element>& d_B,
                         thrust::device_vector<Element>& d_C, const int m, const int n, const int k) {
  product<<<dim3(m / BM, n / BN), THREADS>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
