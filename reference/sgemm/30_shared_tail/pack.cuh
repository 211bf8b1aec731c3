// Rung 28's packing, with the rows of A swapped in pairs: what lay at r lies at r ^ 1.
// The same file lies beside rungs 29, 30 and 32.
#pragma once

#include "tile.cuh"

constexpr int PACK_K = 32, PACK_THREADS = 256;  // p of one packing block

template <int PANEL>
__device__ __forceinline__ void pack_panel(const float* from, float* to, int panel, int rows, int k,
                                           int padded, int flip, float (*tile)[BM + 1]) {
  const int row0 = panel * PANEL, p0 = blockIdx.x * PACK_K;
  if (k % 4 == 0) {
#pragma unroll
    for (int x = 0; x < PANEL * PACK_K / 4 / PACK_THREADS; ++x) {
      const int c = threadIdx.x + x * PACK_THREADS;
      const int q = c % (PACK_K / 4) * 4, r = c / (PACK_K / 4);
      float4 v = make_float4(0, 0, 0, 0);
      if (row0 + r < rows && p0 + q < k)
        v = *reinterpret_cast<const float4*>(from + size_t(row0 + r) * k + p0 + q);
      tile[q][r] = v.x, tile[q + 1][r] = v.y, tile[q + 2][r] = v.z, tile[q + 3][r] = v.w;
    }
  } else {
#pragma unroll
    for (int x = 0; x < PANEL * PACK_K / PACK_THREADS; ++x) {
      const int c = threadIdx.x + x * PACK_THREADS, q = c % PACK_K, r = c / PACK_K;
      tile[q][r] = row0 + r < rows && p0 + q < k ? from[size_t(row0 + r) * k + p0 + q] : 0.0f;
    }
  }
  __syncthreads();
  to += (size_t(panel) * padded + p0) * PANEL;
#pragma unroll
  for (int x = 0; x < PANEL * PACK_K / PACK_THREADS; ++x) {
    const int c = threadIdx.x + x * PACK_THREADS;
    if (p0 + c / PANEL < padded) to[c] = tile[c / PANEL][c % PANEL ^ flip];
  }
}

// Strips of A, then panels of B.
template <int PANEL_A, int PANEL_B>
__global__ __launch_bounds__(PACK_THREADS) void pack(const float* A, const float* B,
                                                     float* packed_a, float* packed_b,
                                                     int panels_a, int m, int n, int k,
                                                     int padded) {
  __shared__ float tile[PACK_K][BM + 1];  // odd: the transposing stores do not collide
  const int panel = blockIdx.y;
  if (panel < panels_a) pack_panel<PANEL_A>(A, packed_a, panel, m, k, padded, 1, tile);
  else pack_panel<PANEL_B>(B, packed_b, panel - panels_a, n, k, padded, 0, tile);
}
