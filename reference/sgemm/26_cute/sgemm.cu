// Rung 26: a kernel like rung 15's, written with CuTe.
//
// Changed:  CuTe computes every index. A layout is a function from coordinates to an offset, given
//           by a shape and strides; a tensor is a pointer with a layout. local_tile() cuts a
//           block's tiles out of a matrix, a tiled copy says which thread moves which elements of
//           a tile, and a tiled MMA which thread computes which elements of C.
// Why:      nothing here is faster, and that is the point: layouts replace the index arithmetic
//           that every rung before repeats, and another layout needs no other loop. A shape that
//           is a type, such as _128, leaves nothing to compute at run time. Edges need one
//           comparison: of an element's coordinates with the shape of the matrix.
// Tile:     BM = BN = 128, BK = 8, TM = TN = 8, 8.25 KiB of shared memory, 256 threads.
// Bound:    shared loads: a thread's rows and columns lie 16 apart, so each is a load of its own.
// Command:  grade reference/sgemm/26_cute
#include <cute/tensor.hpp>

#include "gemm.cuh"

using namespace cute;

using BlockTile = Shape<_128, _128, _8>;  // BM, BN, BK
constexpr int THREADS = 256;
// The tile of A or B in shared memory, (line, p): lines lie side by side, steps along K 132 apart.
using SharedLayout = Layout<Shape<_128, _8>, Stride<_1, Int<132>>>;
// A thread copies one line in 32, at one place of eight along K; the lanes run along K.
using CopyThreads = Layout<Shape<_32, _8>, Stride<_8, _1>>;
// 16 x 16 threads side by side, each with the smallest "matrix multiply-add" there is, an FMA. The
// tiled MMA repeats this pattern until it covers the tile of C: 8 x 8 elements for each thread.
using Computing = TiledMMA<MMA_Atom<UniversalFMA<float>>, Layout<Shape<_16, _16, _1>>>;

// Copies a thread's elements of a tile. `at` holds their coordinates; outside `edge` all is zero.
template <class From, class At, class To>
__device__ void load(const From& from, const At& at, Shape<int, int> edge, To to) {
#pragma unroll
  for (int e = 0; e < size(to); ++e) to(e) = elem_less(at(e), edge) ? from(e) : 0.0f;
}

__global__ void __launch_bounds__(THREADS, 2)
    sgemm(const float* A, const float* B, float* C, int m, int n, int k) {
  // The matrices: A as (row, p), B as (column, p), C as (row, column).
  const Shape<int, int> a_edge(m, k), b_edge(n, k), c_edge(m, n);
  auto mA = make_tensor(make_gmem_ptr(A), a_edge, make_stride(int64_t(k), _1{}));
  auto mB = make_tensor(make_gmem_ptr(B), b_edge, make_stride(int64_t(k), _1{}));
  auto mC = make_tensor(make_gmem_ptr(C), c_edge, make_stride(_1{}, int64_t(m)));

  // This block's tiles of A and B, (BM or BN, BK, steps along K), and its tile of C, (BM, BN). Cut
  // out of a tensor of coordinates in the same way, a tile says where its elements lie.
  auto block = make_coord(blockIdx.x, blockIdx.y, _);
  auto tile_a = [&](auto matrix) {
    return local_tile(matrix, BlockTile{}, block, Step<_1, X, _1>{});
  };
  auto tile_b = [&](auto matrix) {
    return local_tile(matrix, BlockTile{}, block, Step<X, _1, _1>{});
  };
  auto tile_c = [&](auto matrix) {
    return local_tile(matrix, BlockTile{}, block, Step<_1, _1, X>{});
  };

  __shared__ float As[cosize_v<SharedLayout>], Bs[cosize_v<SharedLayout>];
  auto sA = make_tensor(make_smem_ptr(As), SharedLayout{});
  auto sB = make_tensor(make_smem_ptr(Bs), SharedLayout{});

  // This thread's elements of the tiles: those it copies, and those it computes with.
  auto copying = make_tiled_copy(Copy_Atom<UniversalCopy<float>, float>{}, CopyThreads{})
                     .get_slice(threadIdx.x);
  auto a_from = copying.partition_S(tile_a(mA)), b_from = copying.partition_S(tile_b(mB));
  auto a_at = copying.partition_S(tile_a(make_identity_tensor(a_edge)));
  auto b_at = copying.partition_S(tile_b(make_identity_tensor(b_edge)));
  auto a_to = copying.partition_D(sA), b_to = copying.partition_D(sB);
  auto computing = Computing{}.get_slice(threadIdx.x);
  auto a = computing.partition_A(sA), b = computing.partition_B(sB);
  auto c = computing.partition_C(tile_c(mC));
  auto c_at = computing.partition_C(tile_c(make_identity_tensor(c_edge)));
  auto sums = computing.make_fragment_C(c);  // in registers

  clear(sums);
  for (int step = 0; step < size<3>(a_from); ++step) {
    load(a_from(_, _, _, step), a_at(_, _, _, step), a_edge, a_to);
    load(b_from(_, _, _, step), b_at(_, _, _, step), b_edge, b_to);
    __syncthreads();
    gemm(Computing{}, a, b, sums);
    __syncthreads();
  }
#pragma unroll
  for (int e = 0; e < size(sums); ++e)
    if (elem_less(c_at(e), c_edge)) c(e) = sums(e);
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  const dim3 grid(ceil_div(m, 128), ceil_div(n, 128));
  sgemm<<<grid, THREADS>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
