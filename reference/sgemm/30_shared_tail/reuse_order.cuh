// Lanes and FMAs in the order that the register file can serve; rung 29 says why.
// The same file lies beside rungs 29, 30 and 32.
#pragma once

#include "tile.cuh"

// Neighbours differ in both: were every lane's float4 also that of the next lane, or of the next
// but one, a load would be served in half the time and its results would keep FFMAs off the
// registers.
struct Lanes {
  __device__ __forceinline__ static int row(int lane) { return lane % LANES_M; }
  __device__ __forceinline__ static int col(int lane) { return lane / LANES_M ^ lane % LANES_M; }
};

// Every step changes one of the two factors, the other is reused. Of the orders of columns, this
// one leaves the fewest bank conflicts in the machine code. Packing has swapped the rows of A.
struct ReuseOrder {
  __device__ __forceinline__ void operator()(float (&acc)[TM][TN], const float (&a)[TM],
                                             const float (&b)[TN]) const {
#pragma unroll
    for (int y = 0; y < TN; ++y)
#pragma unroll
      for (int x = 0; x < TM; ++x) {
        const int i = y % 2 ? x : TM - 1 - x, j = y < TN / 2 ? TN - 1 - y : y - TN / 2;
        acc[i][j] += a[i ^ 1] * b[j];
      }
  }
};
