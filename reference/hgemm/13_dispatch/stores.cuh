// From the sums to C.
#pragma once

#include "shape.cuh"

__device__ uint32_t pair(float low, float high) {
  alignas(4) const Element both[] = {Element(low), Element(high)};
  return *reinterpret_cast<const uint32_t*>(both);
}

// A consumer's columns of the tile to shared memory: this lane's part. Lines of 128 bytes are
// swizzled. The piece has 64 lines of C^T, or if it is turned, PIECE lines of C.
template <int PIECE>
__device__ void put_piece(Element* piece, const float* sums, bool turned, int warp, int lane) {
  const int row = warp * 16 + lane % 16, turned_unit = warp * 2 + lane / 8 % 2;
#pragma unroll
  for (int next = 0; next < PIECE; next += 16) {
    // 16 columns, two units of 16 bytes of the line; where 8 are left, 8 are stored once more
    const int first = next + 16 <= PIECE ? next : PIECE - 16;
    if (first < next) __syncwarp();  // other lanes have just stored 8 of these columns
    const float* of = sums + first / 2;
    const uint32_t pairs[] = {pair(of[0], of[1]), pair(of[2], of[3]), pair(of[4], of[5]),
                              pair(of[6], of[7])};
    if (turned) {
      const int line = first + lane / 16 * 8 + lane % 8, unit = turned_unit ^ lane % 8;
      store_matrices_turned(&piece[line * 64 + unit * 8], pairs);
    } else {
      const int unit = (first / 8 + lane / 16) ^ (PIECE == 64 ? row % 8 : 0);
      store_matrices(&piece[row * PIECE + unit * 8], pairs);
    }
  }
}

// The same piece from shared memory to C by all four warps. first: its first line of C and element
// of it.
__device__ void copy_piece(const Element* piece, Element* C, int lines, int width, int2 first,
                           int2 ends) {
  const int warp = threadIdx.x % WARPGROUP / 32, lane = threadIdx.x % 32;
#pragma unroll 1
  for (int line = warp; line < lines && first.x + line < ends.x; line += 4)
#pragma unroll 1
    for (int e = lane; e < width && first.y + e < ends.y; e += 32) {
      const int unit = width == 64 ? e / 8 ^ line % 8 : e / 8;
      C[size_t(first.x + line) * ends.y + first.y + e] = piece[line * width + unit * 8 + e % 8];
    }
}

// The consumer's lines of C. All four warps put them together in shared memory, in pieces, as many
// as there is room for, which one thread stores by TMA; or all of them by hand, where lines of C do
// not begin at multiples of 16 bytes.
template <class S>
__device__ void store(Storage<S>& s, const CUtensorMap* C, const float (&sums)[S::BM / 2],
                      const Work& w, int consumer, int i0, int j, Element* by_hand = nullptr) {
  const int t = threadIdx.x % WARPGROUP;
  auto& pieces = s.out[consumer];
#pragma unroll
  for (int first = 0; first < S::BM / S::PIECE; first += S::OUT) {
    if (t == 0) tma_store_wait<0>();  // the pieces before have been read
    warpgroup_sync(consumer);
#pragma unroll
    for (int p = 0; p < S::OUT; ++p)
      put_piece<S::PIECE>(pieces[p], sums + (first + p) * S::PIECE / 2, w.turned, t / 32, t % 32);
    tma_store_fence();
    warpgroup_sync(consumer);
    if (by_hand) {
#pragma unroll 1
      for (int p = 0; p < S::OUT; ++p) {
        const int i = i0 + (first + p) * S::PIECE;
        if (w.turned) copy_piece(pieces[p], by_hand, S::PIECE, S::ROWS, {i, j}, {w.m, w.n});
        else copy_piece(pieces[p], by_hand, S::ROWS, S::PIECE, {j, i}, {w.n, w.m});
      }
    } else if (t == 0) {
#pragma unroll
      for (int p = 0; p < S::OUT; ++p) {
        const int i = i0 + (first + p) * S::PIECE;
        tma_store(C, w.turned ? j : i, w.turned ? i : j, pieces[p]);
      }
      tma_store_commit();
    }
  }
}
