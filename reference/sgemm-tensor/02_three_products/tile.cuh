// Tiles of A and B in shared memory, fragments of them in registers, and mma.sync. A tile of C is
// BM rows of A by BN columns of B, which is BN rows of the product C^T = B^T * A^T: so pairs of a
// thread's results are neighbours in a column of C.
#pragma once

#include <cstdint>

constexpr int BM = 128, BN = 128, BK = 32, STAGES = 3, THREADS = 256;
constexpr int WM = 32, WN = 64;           // the warp tile
constexpr int XS = WN / 16, YS = WM / 8;  // fragments of B and of A in it
constexpr int STEPS = BK / 8;             // of one mma each
constexpr int PIECES = BK / 4;            // of 16 bytes in a line

struct Storage { float a[STAGES][BM * BK], b[STAGES][BN * BK]; };

// Where element (line, p) of a tile lies: pieces of 16 bytes change places, so that eight lines of
// the same piece lie in all banks.
__device__ int place(int line, int p) { return line * BK + (p / 4 ^ line % 8) * 4 + p % 4; }

// *to = `count` floats, or zeros; under way until waited for.
template <int COUNT>
__device__ void copy(float* to, const float* from, bool inside) {
  const uint32_t address = __cvta_generic_to_shared(to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(from),
               "n"(COUNT * 4), "r"(inside ? COUNT * 4 : 0));
}

// Begins to copy the tile of 128 lines from (first, p0) on; what lies outside becomes zero.
__device__ void load_tile(float* tile, const float* matrix, int first, int lines, int p0, int k) {
#pragma unroll
  for (int q = threadIdx.x; q < BM * PIECES; q += THREADS) {
    const int line = q / PIECES, p = p0 + q % PIECES * 4;
    const float* from = matrix + size_t(min(first + line, lines - 1)) * k;
    float* const to = tile + place(line, q % PIECES * 4);
    if (k % 4 == 0) {
      copy<4>(to, from + min(p, k - 4), p < k);
    } else {
      for (int e = 0; e < 4; ++e) copy<1>(to + e, from + min(p + e, k - 1), p + e < k);
    }
  }
}
__device__ void end_group() { asm volatile("cp.async.commit_group;"); }
template <int PENDING>
__device__ void wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// 16 lines of a tile by 8 values of k. Thread t has line t / 4 and, in odd elements, that eight
// lines on, at k = t % 4 and, from element 2 on, four on.
__device__ void load_fragment(float (&to)[4], const float* tile, int line, int p) {
  const int lane = threadIdx.x % 32;
  const uint32_t address =
      __cvta_generic_to_shared(tile + place(line + lane % 16, p + lane / 16 * 4));
  uint32_t of[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(of[0]), "=r"(of[1]), "=r"(of[2]), "=r"(of[3])
               : "r"(address)
               : "memory");
  for (int e = 0; e < 4; ++e) to[e] = __uint_as_float(of[e]);
}

// d[16][8] += x[16][8] * y[8][8]^T, in TF32. y is half of a fragment: lines 0 to 7, or 8 to 15.
__device__ void mma(float (&d)[4], const float (&x)[4], const float (&y)[4], int half) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(__float_as_uint(x[0])), "r"(__float_as_uint(x[1])), "r"(__float_as_uint(x[2])),
        "r"(__float_as_uint(x[3])), "r"(__float_as_uint(y[half])),
        "r"(__float_as_uint(y[half + 2])));
}

// `x` with the 10 bits of a TF32 number's fraction; halves are rounded away from zero.
__device__ float round_to_tf32(float x) {
  return __uint_as_float((__float_as_uint(x) + 0x1000) & 0xffffe000);
}

// The warp's sums to C, whose columns have m rows.
__device__ void store(float* C, const float (&sums)[XS][YS][4], int i0, int j0, int m, int n) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int x = 0; x < XS; ++x)
#pragma unroll
    for (int y = 0; y < YS; ++y)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int j = j0 + x * 16 + lane / 4 + e / 2 * 8, i = i0 + y * 8 + lane % 4 * 2 + e % 2;
        if (i < m && j < n) C[size_t(j) * m + i] = sums[x][y][e];
      }
}

// Calls `multiply(a, b, row of A's tile, row of B's tile)` of this warp for all tiles along K, with
// the two tiles in shared memory: two more are under way meanwhile.
template <class F>
__device__ void each_tile(Storage& s, const float* A, const float* B, int m, int n, int k,
                          F multiply) {
  const int warp = threadIdx.x / 32, row = warp % (BM / WM) * WM, column = warp / (BM / WM) * WN;
  const auto load = [&](int step) {
    if (step * BK < k) {
      load_tile(s.a[step % STAGES], A, blockIdx.x * BM, m, step * BK, k);
      load_tile(s.b[step % STAGES], B, blockIdx.y * BN, n, step * BK, k);
    }
    end_group();
  };
  for (int step = 0; step < STAGES - 1; ++step) load(step);
  for (int step = 0; step * BK < k; ++step) {
    wait_group<STAGES - 2>();
    __syncthreads();  // the tile has come, and nobody reads the one before any more
    load(step + STAGES - 1);
    multiply(s.a[step % STAGES], s.b[step % STAGES], row, column);
  }
}
