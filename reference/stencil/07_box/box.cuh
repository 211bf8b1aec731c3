// Two steps of a box in one pass over memory. A block has a tile of 128 × 20 cells and walks up z:
// each plane that it loads makes the one below a step older, and that one the next. A warp has the
// sums of two rows after two steps, and of four after one: it computes two of them for itself that
// its neighbours compute, too, so that warps share nothing but the planes of step 0.
#pragma once
#include <cuda_pipeline.h>

namespace box {

constexpr int T = 2, ROWS = 2, WARPS = 8, DEEP = 4;  // planes in shared memory at a time
constexpr int ALL = ROWS + 2 * T, HIGH = WARPS * ROWS, TILE = HIGH + 2 * T;
constexpr int FETCHES = (TILE + WARPS - 1) / WARPS;          // rows of a plane that a warp brings
constexpr int HALO = 4, WIDTH = 128 - 2 * HALO, CLIMB = 48;  // planes of a block

// A plane comes in, `z` of step 0; the one two below, after two steps, comes out. As in plane.cuh.
template <bool EDGES>
__device__ __forceinline__ void advance(float (&u)[ALL][4], float (&sum)[T][ALL - 2][4],
                                        float (&below)[T][ALL - 2][4], const float (&weight)[4],
                                        const float (&keep)[4], int y, int z, int ny, int nz) {
#pragma unroll
  for (int t = 0; t < T; ++t) {
    const int level = z - t;
    const bool fixed = EDGES && (level <= 0 || level >= nz - 1);
    const bool done = EDGES && (level <= 1 || level >= nz);
    float next[ALL][4];
#pragma unroll
    for (int r = 1; r < ALL - 1 - 2 * t; ++r) {
      const int at = y - T + t + r;
      const bool edge = EDGES && (at <= 0 || at >= ny - 1);
      const float left = __shfl_up_sync(~0u, u[r][3], 1);
      const float right = __shfl_down_sync(~0u, u[r][0], 1);
      float (&s)[4] = sum[t][r - 1], (&b)[4] = below[t][r - 1];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float beside = (k > 0 ? u[r][k - 1] : left) + (k < 3 ? u[r][k + 1] : right);
        const float around = beside + (u[r - 1][k] + u[r + 1][k]);
        next[r - 1][k] = done || edge ? s[k] : s[k] + weight[k] * u[r][k];
        s[k] = fixed || edge ? u[r][k] : b[k] + keep[k] * u[r][k] + weight[k] * around;
        b[k] = weight[k] * u[r][k];
      }
    }
#pragma unroll
    for (int r = 0; r < ALL - 2 - 2 * t; ++r)
#pragma unroll
      for (int k = 0; k < 4; ++k) u[r][k] = next[r][k];
  }
}

template <bool WIDE>
__global__ void __launch_bounds__(32 * WARPS, 2)
    steps(const float* from, float* to, int nx, int ny, int nz, float alpha) {
  __shared__ alignas(16) float ring[DEEP][TILE][128];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int x = blockIdx.x * WIDTH - HALO + 4 * lane, top = blockIdx.y * HIGH;
  const int y = top + warp * ROWS, first = blockIdx.z * CLIMB, last = min(nz, first + CLIMB);
  const size_t plane = size_t(nx) * ny;
  const bool inside = lane > 0 && lane < 31;
  float sum[T][ALL - 2][4] = {}, below[T][ALL - 2][4] = {}, weight[4], keep[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const bool fixed = x + k <= 0 || x + k >= nx - 1;
    weight[k] = fixed ? 0 : alpha;
    keep[k] = fixed ? 1 : 1 - 6 * alpha;
  }
  const int end = last + T, roof = min(end, nz) - 1;
  const bool inside_x = x >= 0 && x < nx;
  int source[FETCHES];  // what lies outside is 0, or a copy of the edge
#pragma unroll
  for (int f = 0; f < FETCHES; ++f)
    source[f] = min(max(top - T + warp + f * WARPS, 0), ny - 1) * nx + (inside_x ? x : 0);
  auto fetch = [&](int z, int slot) {
    const float* level = from + min(max(z, 0), roof) * plane;
    float* place = &ring[slot][warp][4 * lane];
#pragma unroll
    for (int f = 0; f < FETCHES; ++f) {
      if (warp + f * WARPS >= TILE) break;
      const float* row = level + source[f];
      if (WIDE) {
        __pipeline_memcpy_async(place + f * WARPS * 128, row, 16, inside_x ? 0 : 16);
      } else {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const bool there = inside_x && x + k < nx;
          float* cell = place + f * WARPS * 128 + k;
          __pipeline_memcpy_async(cell, there ? row + k : row, 4, there ? 0 : 4);
        }
      }
    }
    __pipeline_commit();
  };
  int z = first - T, slot = 0;
  auto next_plane = [&](float (&u)[ALL][4]) {
    __pipeline_wait_prior(DEEP - 2);
    __syncthreads();  // the plane is there for all, and all have read the one before
    fetch(z + DEEP - 1, slot == 0 ? DEEP - 1 : slot - 1);
#pragma unroll
    for (int r = 0; r < ALL; ++r) {
      const float4 v = *reinterpret_cast<const float4*>(&ring[slot][warp * ROWS + r][4 * lane]);
      u[r][0] = v.x, u[r][1] = v.y, u[r][2] = v.z, u[r][3] = v.w;
    }
    slot = slot == DEEP - 1 ? 0 : slot + 1;
  };
  auto finish = [&](const float (&u)[ALL][4]) {
    if (z - T < first || !inside) return;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      float* row = to + (z - T) * plane + size_t(y + r) * nx;
      if (y + r >= ny) continue;
      if (WIDE) {
        const float4 v = make_float4(u[r][0], u[r][1], u[r][2], u[r][3]);
        if (x < nx) *reinterpret_cast<float4*>(row + x) = v;
      } else {
#pragma unroll
        for (int k = 0; k < 4; ++k)
          if (x + k < nx) row[x + k] = u[r][k];
      }
    }
  };
  auto carefully = [&](int until) {
#pragma unroll 1
    for (; z < until; ++z) {
      float u[ALL][4];
      next_plane(u);
      advance<true>(u, sum, below, weight, keep, y, z, ny, nz);
      finish(u);
    }
  };
  for (int k = 0; k < DEEP - 1; ++k) fetch(z + k, k);
  const bool border = top - T <= 0 || top + HIGH + T >= ny;
  carefully(border ? end : min(end, T + 1));
#pragma unroll 1
  for (; z < min(end, nz - 1); ++z) {
    float u[ALL][4];
    next_plane(u);
    advance<false>(u, sum, below, weight, keep, y, z, ny, nz);
    finish(u);
  }
  carefully(end);
}

inline void launch(const float* from, float* to, int nx, int ny, int nz, float alpha) {
  const dim3 grid((nx + WIDTH - 1) / WIDTH, (ny + HIGH - 1) / HIGH, (nz + CLIMB - 1) / CLIMB);
  const auto kernel = nx % 4 == 0 ? steps<true> : steps<false>;
  kernel<<<grid, 32 * WARPS>>>(from, to, nx, ny, nz, alpha);
}

}  // namespace box
