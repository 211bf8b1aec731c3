// T steps of a plane in one pass over memory. A warp walks down a strip of 128 columns. Each row
// that it loads makes the row above one step older, which makes the one above that another step
// older, and so on: T rows are on the way through the registers of a warp.
#pragma once

namespace plane {

constexpr int WARPS = 2, AHEAD = 4;  // of a block; rows that are loaded before they are needed
constexpr int BLOCKS = 6 * 132;      // what an H200 holds at a time

template <int T>
struct Strip {
  static constexpr int HALO = (T + 3) / 4 * 4;  // columns on each side that go stale in T steps
  static constexpr int WIDTH = 128 - 2 * HALO;
};

template <bool WIDE>
__device__ void load(float (&u)[4], const float* from, int x, int nx) {
  if (WIDE) {
    const bool there = x >= 0 && x < nx;
    const float4 v = there ? *reinterpret_cast<const float4*>(from + x) : float4{};
    u[0] = v.x, u[1] = v.y, u[2] = v.z, u[3] = v.w;
  } else {
#pragma unroll
    for (int k = 0; k < 4; ++k) u[k] = x + k >= 0 && x + k < nx ? from[x + k] : 0;
  }
}

template <bool WIDE>
__device__ void store(float* to, const float (&u)[4], int x, int nx) {
  if (WIDE) {
    if (x < nx) *reinterpret_cast<float4*>(to + x) = make_float4(u[0], u[1], u[2], u[3]);
  } else {
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (x + k < nx) to[x + k] = u[k];
  }
}

// One row comes in, `row` of step 0; the one that is T rows above, after T steps, comes out. Of
// each step there are the sum for the row above, which lacks one neighbour, and what that row's own
// values add to the next one. A cell that never changes has `weight` 0 and keeps all of itself.
template <int T, bool EDGES>
__device__ __forceinline__ void advance(float (&u)[4], float (&sum)[T][4], float (&above)[T][4],
                                        const float (&weight)[4], const float (&keep)[4], int row,
                                        int ny) {
#pragma unroll
  for (int t = 0; t < T; ++t) {
    const float left = __shfl_up_sync(~0u, u[3], 1), right = __shfl_down_sync(~0u, u[0], 1);
    const int r = row - t;
    const bool fixed = EDGES && (r <= 0 || r >= ny - 1), done = EDGES && (r <= 1 || r >= ny);
    float next[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float beside = (k > 0 ? u[k - 1] : left) + (k < 3 ? u[k + 1] : right);
      next[k] = done ? sum[t][k] : sum[t][k] + weight[k] * u[k];
      sum[t][k] = fixed ? u[k] : above[t][k] + keep[k] * u[k] + weight[k] * beside;
      above[t][k] = weight[k] * u[k];
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) u[k] = next[k];
  }
}

template <int T, bool WIDE>
__global__ void __launch_bounds__(32 * WARPS, 6)
    steps(const float* from, float* to, int nx, int ny, int height, float alpha) {
  using S = Strip<T>;
  const int lane = threadIdx.x % 32, strip = blockIdx.x * WARPS + threadIdx.x / 32;
  const int x = strip * S::WIDTH - S::HALO + 4 * lane;
  const int top = blockIdx.y * height, bottom = min(ny, top + height);
  if (strip * S::WIDTH >= nx) return;  // all of a warp
  const bool inside = lane >= S::HALO / 4 && lane < 32 - S::HALO / 4;
  float sum[T][4] = {}, above[T][4] = {}, ahead[AHEAD][4], weight[4], keep[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const bool fixed = x + k <= 0 || x + k >= nx - 1;
    weight[k] = fixed ? 0 : alpha;
    keep[k] = fixed ? 1 : 1 - 4 * alpha;
  }
  const int end = bottom + T, last = min(end, ny) - 1;
  auto fetch = [&](float (&u)[4], int row) {
    load<WIDE>(u, from + size_t(min(max(row, 0), last)) * nx, x, nx);
  };
  auto finish = [&](const float (&u)[4], int row) {
    if (row >= top && inside) store<WIDE>(to + size_t(row) * nx, u, x, nx);
  };
  int row = top - T;
#pragma unroll
  for (int k = 0; k < AHEAD; ++k) fetch(ahead[k], row + k);
  auto carefully = [&](int until) {  // where rows of the edge are among those on the way
#pragma unroll 1
    for (; row < until; ++row) {
      float u[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        u[k] = ahead[0][k];
#pragma unroll
        for (int a = 1; a < AHEAD; ++a) ahead[a - 1][k] = ahead[a][k];
      }
      fetch(ahead[AHEAD - 1], row + AHEAD);
      advance<T, true>(u, sum, above, weight, keep, row, ny);
      finish(u, row - T);
    }
  };
  carefully(min(end, T + 1));
#pragma unroll 1
  for (; row + AHEAD <= min(end, ny - 1); row += AHEAD) {
#pragma unroll
    for (int a = 0; a < AHEAD; ++a) {
      float u[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) u[k] = ahead[a][k];
      fetch(ahead[a], row + a + AHEAD);
      advance<T, false>(u, sum, above, weight, keep, row + a, ny);
      finish(u, row + a - T);
    }
  }
  carefully(end);
}

template <int T>
void launch(const float* from, float* to, int nx, int ny, float alpha) {
  const int across = (nx + WARPS * Strip<T>::WIDTH - 1) / (WARPS * Strip<T>::WIDTH);
  const int parts = across < BLOCKS ? BLOCKS / across : 1, least = 4 * T;  // each repeats 2·T rows
  const int even = (ny + parts - 1) / parts, height = even > least ? even : least;
  const dim3 grid(across, (ny + height - 1) / height);
  const auto kernel = nx % 4 == 0 ? steps<T, true> : steps<T, false>;
  kernel<<<grid, 32 * WARPS>>>(from, to, nx, ny, height, alpha);
}

}  // namespace plane
