// CuTe: a transposition pass for A and for B, then a product of 128×128×8 tiles that lie m-major on both
// sides. 256 threads with 8×8 elements of C each, every 16th row and column. WORDS 1: threads copy single
// elements to shared memory just before their use. WORDS 4: they copy 16 bytes at a time through registers,
// one tile ahead.
#include <cute/tensor.hpp>

#include "gemm.cuh"

using namespace cute;

constexpr int EDGE = 32;
using Extents = Shape<_128, _128, _8>;

// to[column][row] = from[row][column]
__global__ void transpose(const float* from, float* to, int rows, int columns) {
  __shared__ float tile[EDGE][EDGE + 1];
  const int x = blockIdx.x * EDGE, y = blockIdx.y * EDGE;
  for (int i = threadIdx.y; i < EDGE; i += blockDim.y)
    tile[i][threadIdx.x] = from[size_t(y + i) * columns + x + threadIdx.x];
  __syncthreads();
  for (int i = threadIdx.y; i < EDGE; i += blockDim.y)
    to[size_t(x + i) * rows + y + threadIdx.x] = tile[threadIdx.x][i];
}

__global__ void __launch_bounds__(256) multiply(const float* A, const float* B, float* C, int m, int n, int k) {
  const auto at = make_coord(blockIdx.x, blockIdx.y, _);
  const auto part = [&](auto pointer, auto shape, auto stride, auto step) {
    return local_tile(make_tensor(make_gmem_ptr(pointer), shape, stride), Extents{}, at, step);
  };
  auto tiles_a = part(A, make_shape(m, k), make_stride(_1{}, m), Step<_1, X, _1>{});
  auto tiles_b = part(B, make_shape(n, k), make_stride(_1{}, n), Step<X, _1, _1>{});
  auto tile_c = part(C, make_shape(m, n), make_stride(_1{}, m), Step<_1, _1, X>{});
  const int tiles = size<2>(tiles_a);

  __shared__ alignas(16) float words_a[128 * 8], words_b[128 * 8];
  const Layout<Shape<_128, _8>> m_major{};
  auto shared_a = make_tensor(make_smem_ptr(words_a), m_major);
  auto shared_b = make_tensor(make_smem_ptr(words_b), m_major);
  const Layout<Shape<_32, _8>> copiers{};

#if WORDS == 1
  auto from_a = local_partition(tiles_a, copiers, threadIdx.x);
  auto from_b = local_partition(tiles_b, copiers, threadIdx.x);
  auto to_a = local_partition(shared_a, copiers, threadIdx.x);
  auto to_b = local_partition(shared_b, copiers, threadIdx.x);
  const Layout<Shape<_16, _16>> threads{};
  auto of_a = local_partition(shared_a, threads, threadIdx.x, Step<_1, X>{});
  auto of_b = local_partition(shared_b, threads, threadIdx.x, Step<X, _1>{});
  auto of_c = local_partition(tile_c, threads, threadIdx.x, Step<_1, _1>{});
  auto sums = make_tensor_like(of_c);
  clear(sums);
  for (int t = 0; t < tiles; ++t) {
    copy(from_a(_, _, t), to_a);
    copy(from_b(_, _, t), to_b);
    __syncthreads();
    gemm(of_a, of_b, sums);
    __syncthreads();
  }
#else
  const auto copier =
      make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, float>{}, copiers, Layout<Shape<_4, _1>>{});
  const auto mine = copier.get_thread_slice(threadIdx.x);
  auto from_a = mine.partition_S(tiles_a), from_b = mine.partition_S(tiles_b);
  auto to_a = mine.partition_D(shared_a), to_b = mine.partition_D(shared_b);
  auto held_a = make_fragment_like(to_a), held_b = make_fragment_like(to_b);
  const auto fma = make_tiled_mma(UniversalFMA<float, float, float>{}, Layout<Shape<_16, _16, _1>>{});
  const auto lane = fma.get_slice(threadIdx.x);
  auto of_a = lane.partition_A(shared_a), of_b = lane.partition_B(shared_b);
  auto of_c = lane.partition_C(tile_c);
  auto sums = lane.make_fragment_C(of_c);
  clear(sums);
  copy(copier, from_a(_, _, _, 0), held_a);
  copy(copier, from_b(_, _, _, 0), held_b);
  for (int t = 0; t < tiles; ++t) {
    __syncthreads();
    copy(held_a, to_a);
    copy(held_b, to_b);
    __syncthreads();
    const int next = t + 1 < tiles ? t + 1 : t;
    copy(copier, from_a(_, _, _, next), held_a);
    copy(copier, from_b(_, _, _, next), held_b);
    gemm(fma, of_a, of_b, sums);
  }
#endif
  copy(sums, of_c);
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  float *A = nullptr, *B = nullptr;
  if (cudaMalloc(&A, sizeof(float) * m * k) != cudaSuccess || cudaMalloc(&B, sizeof(float) * n * k) != cudaSuccess)
    return;
  transpose<<<dim3(k / EDGE, m / EDGE), dim3(EDGE, 8)>>>(d_A.data().get(), A, m, k);
  transpose<<<dim3(k / EDGE, n / EDGE), dim3(EDGE, 8)>>>(d_B.data().get(), B, n, k);
  multiply<<<dim3(m / 128, n / 128), 256>>>(A, B, d_C.data().get(), m, n, k);
  cudaFree(A);
  cudaFree(B);
}
