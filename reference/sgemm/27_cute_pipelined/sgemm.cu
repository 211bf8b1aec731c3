// Rung 27: CuTe with cp.async, wide loads from shared memory and rung 19's lane map.
//
// Changed:  layouts, atoms and the order of the copies. The copy atom is cp.async, into one of two
//           stages of tiles. The tiled MMA numbers its threads through nested shapes, so that a
//           warp covers 64 x 32 elements, and permutes rows and columns, so that a thread has them
//           in fours: its values for one step along K are four LDS.128. It loads those of the next
//           step while it computes with one step's.
// Why:      as in rungs 18, 19, 21 and 23. A tile is 16 deep, so that two stages hide the latency
//           and pointers advance half as often. Only the first tile along K may be partial, so the
//           loop compares nothing along K; what is never copied stays zero, as it was cleared.
// Tile:     BM = BN = 128, BK = 16, warp 64 x 32, TM = TN = 8, 2 stages, 33 KiB of shared memory,
//           256 threads.
// Bound:    instruction issue. The FMAs are in rung 23's order, which CuTe's gemm() of whole
//           fragments has not. Which factor comes first decides how ptxas places registers: with
//           A first, 1024 FFMA wait 409 cycles in the model instead of 165 (nvcc 13.0, sm_90).
// Command:  grade reference/sgemm/27_cute_pipelined
#include <cute/tensor.hpp>

#include "gemm.cuh"

using namespace cute;

using BM = _128;
using BN = _128;
using BK = _16;
using BlockTile = Shape<BM, BN, BK>;
constexpr int STAGES = 2, THREADS = 256;
// Tiles of A or B in shared memory, (line, p, stage): lines lie side by side, steps 132 apart.
using SharedLayout =
    Layout<Shape<_128, BK, Int<STAGES>>, Stride<_1, Int<132>, Int<132 * BK::value>>>;
// A thread copies one line in 32, at one place of eight along K; the lanes run along K.
using CopyThreads = Layout<Shape<_32, _8>, Stride<_8, _1>>;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
using CopyAtom = Copy_Atom<UniversalCopy<float>, float>;  // sm_75: through a register, at once
constexpr int BLOCKS = 1;                                 // its shared memory holds no two
#else
using CopyAtom = Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS<float>, float>;
constexpr int BLOCKS = 2;
#endif
// 16 x 16 threads, ((x, warp row), (y, warp column)), to the number of a thread: x is bits 1 to 3
// of its lane, y bits 0 and 4; a warp's number is its row plus twice its column.
using Threads = Layout<Shape<Shape<_8, _2>, Shape<_2, _2, _4>, _1>,
                       Stride<Stride<_2, _32>, Stride<_1, _16, _64>, _0>>;
// ((x, warp row), (four, half)) to a row of the tile, ((y, warp column), (four, half)) to a column.
using Rows = Layout<Shape<_8, _2, _4, _2>, Stride<_4, _64, _1, _32>>;
using Columns = Layout<Shape<_4, _4, _4, _2>, Stride<_4, _32, _1, _16>>;
using Atom = MMA_Atom<UniversalFMA<float>>;
using Computing = TiledMMA<Atom, Threads, Tile<Rows, Columns, _1>>;
using Wide = AutoVectorizingCopyWithAssumedAlignment<128>;

__global__ void __launch_bounds__(THREADS, BLOCKS)
    sgemm(const float* A, const float* B, float* C, int m, int n, int k) {
  __shared__ __align__(16) float As[cosize_v<SharedLayout>], Bs[cosize_v<SharedLayout>];
  auto sA = make_tensor(make_smem_ptr(As), SharedLayout{});
  auto sB = make_tensor(make_smem_ptr(Bs), SharedLayout{});

  // The matrices begin `before` columns early, so that the last of the tiles along K is whole.
  const int tiles = ceil_div(k, BK{}), before = tiles * BK{} - k;
  auto a_shape = make_shape(m, tiles * BK{}), b_shape = make_shape(n, tiles * BK{});
  auto c_shape = make_shape(m, n);
  auto mA = make_tensor(make_gmem_ptr(A - before), a_shape, make_stride(int64_t(k), _1{}));
  auto mB = make_tensor(make_gmem_ptr(B - before), b_shape, make_stride(int64_t(k), _1{}));
  auto mC = make_tensor(make_gmem_ptr(C), c_shape, make_stride(_1{}, int64_t(m)));
  auto block = make_coord(blockIdx.x, blockIdx.y, _);
  auto gA = local_tile(mA, BlockTile{}, block, Step<_1, X, _1>{});
  auto gB = local_tile(mB, BlockTile{}, block, Step<X, _1, _1>{});
  auto gC = local_tile(mC, BlockTile{}, block, Step<_1, _1, X>{});
  auto cC = local_tile(make_identity_tensor(c_shape), BlockTile{}, block, Step<_1, _1, X>{});

  auto copying = make_tiled_copy(CopyAtom{}, CopyThreads{}).get_slice(threadIdx.x);
  auto a_from = copying.partition_S(gA(_, _, 0)), b_from = copying.partition_S(gB(_, _, 0));
  auto a_to = copying.partition_D(sA), b_to = copying.partition_D(sB);
  auto at = copying.partition_S(make_identity_tensor(Shape<_128, BK>{}));  // in the tile
  auto a_inside = make_tensor<bool>(shape(at)), b_inside = make_tensor<bool>(shape(at));
  auto fetch = [&](int stage) {  // the next tile
    copy_if(CopyAtom{}, a_inside, a_from, a_to(_, _, _, stage));
    copy_if(CopyAtom{}, b_inside, b_from, b_to(_, _, _, stage));
    a_from.data() = a_from.data() + BK{};
    b_from.data() = b_from.data() + BK{};
    cp_async_fence();
  };
  auto predicate = [&](int first) {
#pragma unroll
    for (int e = 0; e < size(at); ++e) {
      a_inside(e) = get<1>(at(e)) >= first && get<0>(at(e)) < m - int(blockIdx.x) * BM{};
      b_inside(e) = get<1>(at(e)) >= first && get<0>(at(e)) < n - int(blockIdx.y) * BN{};
    }
  };

  auto computing = Computing{}.get_slice(threadIdx.x);
  auto a = computing.partition_A(sA);  // (1, rows, p, stage)
  auto b = computing.partition_B(sB);
  auto c = computing.partition_C(gC);
  auto c_at = computing.partition_C(cC);
  auto a_now = make_fragment_like(a(_, _, _, 0));
  auto b_now = make_fragment_like(b(_, _, _, 0));
  auto sums = computing.make_fragment_C(c);

  for (int e = threadIdx.x; e < cosize_v<SharedLayout>; e += THREADS) As[e] = Bs[e] = 0.0f;
  __syncthreads();
  predicate(before);
  fetch(0);
  predicate(0);
  cp_async_wait<0>();
  __syncthreads();
  copy(Wide{}, a(_, _, 0, 0), a_now(_, _, 0));
  copy(Wide{}, b(_, _, 0, 0), b_now(_, _, 0));
  clear(sums);
  int stage = 0;
  for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
    for (int q = 0; q < BK{}; ++q) {
      if (q == 0 && tile + 1 < tiles) fetch(stage ^ 1);
      if (q == BK{} - 1) {  // on to the next tile, when it is here and all are done with this one
        cp_async_wait<0>();
        __syncthreads();
        stage ^= 1;
      }
      copy(Wide{}, a(_, _, (q + 1) % BK{}, stage), a_now(_, _, (q + 1) % BK{}));
      copy(Wide{}, b(_, _, (q + 1) % BK{}, stage), b_now(_, _, (q + 1) % BK{}));
#pragma unroll
      for (int v = 0; v < size<2>(sums); ++v)
#pragma unroll
        for (int t = 0; t < size<1>(sums); ++t) {
          const int u = v % 2 ? t : size<1>(sums) - 1 - t;  // rung 29 says why
          gemm(Atom{}, b_now(_, v, q), a_now(_, u, q), sums(_, u, v));
        }
    }
  }

  const bool whole = int(blockIdx.x + 1) * BM{} <= m && int(blockIdx.y + 1) * BN{} <= n;
  if (whole && m % 4 == 0 && reinterpret_cast<size_t>(C) % 16 == 0) {
    copy(Wide{}, sums, c);
  } else {
#pragma unroll
    for (int e = 0; e < size(sums); ++e)
      if (elem_less(c_at(e), c_shape)) c(e) = sums(e);
  }
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  const dim3 grid(ceil_div(m, BM{}), ceil_div(n, BN{}));
  sgemm<<<grid, THREADS>>>(d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
