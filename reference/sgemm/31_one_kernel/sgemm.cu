// Rung 31: one kernel and no workspace, at the speed of the packed ones.
//
// Changed:  nothing is packed. A thread loads 16 bytes along K and stores them to four rows of the
//           tile in shared memory, from where rung 29's loop reads: six LDS.128 for 128 FFMA. Half
//           a K block waits in registers while the other half is multiplied. The tile is
//           128 x 256, so that the loads and stores, 1.9 for 128 FFMA, are few. The last wave is
//           shared along K as in rung 30, but the parts are summed in C itself: a block that has
//           a later part of K waits until C holds the sum of all parts before it.
// Why:      the lab asks for one kernel per call, and packing costs 5 % at 2048. cp.async of four
//           bytes to the transposed place (rung 23) takes five wavefronts of shared memory for 32
//           floats, because they come from four lines; 16-byte loads and stores take 2.1.
// Tile:     128 x 256, BK = 16, TM = 16, TN = 8, 5 stages, 123 KiB, 256 threads; where there are
//           few tiles 128 x 64, BK = 32, K split among four groups of warps, 100 KiB; 128 x 128,
//           8 x 8 per thread, 3 stages, where shared memory is small (sm_75).
// Bound:    instruction issue, 0.91 of it FFMA, and 10 % of it lost, half to waits for registers.
// Command:  grade reference/sgemm/31_one_kernel
#include <algorithm>

#include "gemm.cuh"
#include "turns.cuh"

// Clocks of an H200, measured (docs/measurements/2026-11-22-h200-candidates.txt): of one value of k
// where all multiprocessors are busy, of a tile besides, and of one block's sums in C.
template <class S>
constexpr int K_CLOCKS = S::BN == 256 ? 291 : S::BN == 128 ? 312 : 88;
constexpr int TILE_CLOCKS = 9000;
template <class S>
constexpr int TURN_CLOCKS = S::BM * S::BN * 2 / 3;

// What the product should take; divides it in the way that takes least.
template <class S>
double clocks(int sms, direct::Work& w) {
  const int slots = S::BLOCKS * sms, tiles = w.whole;
  const double tile = double(w.k) * K_CLOCKS<S> + TILE_CLOCKS;
  double least = direct::ceil_div(tiles, slots) * tile;
  for (int left : {tiles % slots, tiles}) {  // tiles that could be shared: the last wave's, or all
    if (left == 0 || left > direct::MOST_SHARED) continue;
    const int sharers = int(std::min((long long)slots, (long long)left * w.k_blocks));
    const int turns = sharers > left ? direct::ceil_div(sharers, left) : 1;
    const double run = double(left) * w.k * K_CLOCKS<S> / sharers;
    const double shared = (tiles - left) / slots * tile + run + 2 * TILE_CLOCKS +
                          turns * TURN_CLOCKS<S>;
    if (shared < least) {
      least = shared;
      w.whole = tiles - left;
      w.sharers = sharers;
    }
  }
  return least;
}

template <class S>
void launch(const float* A, const float* B, float* C, const direct::Work& w) {
  cudaFuncSetAttribute(direct::sgemm<S>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::SHARED);
  direct::sgemm<S><<<w.whole + w.sharers, S::THREADS, S::SHARED>>>(A, B, C, w);
}

int attribute(cudaDeviceAttr which) {
  int value = 0;
  cudaDeviceGetAttribute(&value, which, 0);
  return value;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  using Large = direct::Shape<16, 8, 2, 4, 1, 16, 8, 5>;    // 128 x 256
  using Deep = direct::Shape<16, 8, 2, 1, 4, 32, 8, 4>;     // 128 x 64
  using Modest = direct::Shape<8, 8, 4, 2, 1, 16, 8, 3>;    // 128 x 128
  const float *A = d_A.data().get(), *B = d_B.data().get();
  float* C = d_C.data().get();
  const int sms = attribute(cudaDevAttrMultiProcessorCount);
  direct::Work large = direct::work<Large>(m, n, k), deep = direct::work<Deep>(m, n, k);
  if (attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) < Large::SHARED) {
    direct::Work modest = direct::work<Modest>(m, n, k);
    clocks<Modest>(sms, modest);
    launch<Modest>(A, B, C, modest);
  } else if (clocks<Large>(sms, large) < clocks<Deep>(sms, deep)) {
    launch<Large>(A, B, C, large);
  } else {
    launch<Deep>(A, B, C, deep);
  }
}
