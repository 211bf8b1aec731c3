// From the sums to C.
#pragma once

#include "shape.cuh"

__device__ uint32_t pair(float low, float high) {
  alignas(4) const Element both[] = {Element(low), Element(high)};
  return *reinterpret_cast<const uint32_t*>(both);
}

// 64 lines of sums to shared memory, where lines of 128 bytes are swizzled: this lane's part.
template <int PIECE>
__device__ void put_piece(Element* piece, const float* sums, int row, int lane) {
#pragma unroll
  for (int q = 0; q < PIECE / 16; ++q) {  // 16 columns, two pieces of 16 bytes of the line
    const float* of = sums + q * 8;
    const int line_piece = (q * 2 + lane / 16) ^ (PIECE == 64 ? row % 8 : 0);
    store_matrices(&piece[row * PIECE + line_piece * 8], {pair(of[0], of[1]), pair(of[2], of[3]),
                                                          pair(of[4], of[5]), pair(of[6], of[7])});
  }
}

// The consumer's lines of C by TMA. All four warps put them together in shared memory, in pieces of
// 64 lines, as many as there is room for, which one thread stores.
template <class S>
__device__ void store_by_tma(Storage<S>& s, const CUtensorMap* C, const float (&sums)[S::BM / 2],
                             int consumer, int i0, int j) {
  const int t = threadIdx.x % WARPGROUP, lane = t % 32, row = t / 32 * 16 + lane % 16;
  auto& pieces = s.out[consumer];
#pragma unroll
  for (int first = 0; first < S::BM / S::PIECE; first += S::OUT) {
    if (t == 0) tma_store_wait<0>();  // the pieces before have been read
    warpgroup_sync(consumer);
#pragma unroll
    for (int p = 0; p < S::OUT; ++p)
      put_piece<S::PIECE>(pieces[p], sums + (first + p) * S::PIECE / 2, row, lane);
    tma_store_fence();
    warpgroup_sync(consumer);
    if (t == 0) {
#pragma unroll
      for (int p = 0; p < S::OUT; ++p) tma_store(C, i0 + (first + p) * S::PIECE, j, pieces[p]);
      tma_store_commit();
    }
  }
}

// The same where lines of C do not begin at multiples of 16 bytes.
template <class S>
__device__ void store_plainly(Element* C, const float (&sums)[S::BM / 2], const Work& w, int i0,
                              int j) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int e = 0; e < S::BM / 2; ++e) {
    const int row = j + lane / 4 + e / 2 % 2 * 8, i = i0 + e / 4 * 8 + lane % 4 * 2 + e % 2;
    if (i < w.m && row < w.n) C[size_t(row) * w.m + i] = Element(sums[e]);
  }
}
