// Rung 3: four cells of a row for each thread.
//
// Changed:  a thread loads four cells, and the four of each neighbouring row, as float4 where rows
//           are aligned, one by one elsewhere; along x two single cells are missing.
// Why:      five loads for four cells instead of twenty, and 56 bytes of each thread on the way
//           instead of 20. What a thread computes for all four, such as indices and comparisons,
//           it computes once.
// Bound:    DRAM.
// Command:  grade --lab stencil reference/stencil/03_float4
#include "stencil.cuh"

constexpr int LANES = 64, HEIGHT = 4;  // a block has LANES · 4 × HEIGHT cells

// `left` of the cells exist; WIDE: all four, and they are aligned.
template <bool WIDE>
__device__ void load(float (&u)[4], const float* from, int left) {
  if (WIDE) {
    const float4 v = *reinterpret_cast<const float4*>(from);
    u[0] = v.x, u[1] = v.y, u[2] = v.z, u[3] = v.w;
  } else {
#pragma unroll
    for (int k = 0; k < 4; ++k) u[k] = k < left ? from[k] : 0;
  }
}

template <bool WIDE>
__device__ void store(float* to, const float (&u)[4], int left) {
  if (WIDE) {
    *reinterpret_cast<float4*>(to) = make_float4(u[0], u[1], u[2], u[3]);
  } else {
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (k < left) to[k] = u[k];
  }
}

template <bool WIDE>
__global__ void step(const float* from, float* to, int nx, int ny, int nz, float alpha) {
  const int x = (blockIdx.x * LANES + threadIdx.x) * 4, y = blockIdx.y * HEIGHT + threadIdx.y;
  const int z = blockIdx.z, left = nx - x;
  if (left <= 0 || y >= ny) return;
  const size_t plane = size_t(nx) * ny, at = z * plane + size_t(y) * nx + x;
  const bool flat = nz == 1;
  float u[4], sum[4], other[4];
  load<WIDE>(u, from + at, left);
  if (y > 0 && y < ny - 1 && (flat || (z > 0 && z < nz - 1))) {
    load<WIDE>(sum, from + at - nx, left);
    load<WIDE>(other, from + at + nx, left);
#pragma unroll
    for (int k = 0; k < 4; ++k) sum[k] += other[k];
    if (!flat) {
      float above[4];
      load<WIDE>(other, from + at - plane, left);
      load<WIDE>(above, from + at + plane, left);
#pragma unroll
      for (int k = 0; k < 4; ++k) sum[k] += other[k] + above[k];
    }
    const float before = x > 0 ? from[at - 1] : 0, after = left > 4 ? from[at + 4] : 0;
    float next[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      sum[k] += (k > 0 ? u[k - 1] : before) + (k < 3 ? u[k + 1] : after);
      const bool edge = x + k == 0 || k + 1 >= left;
      next[k] = edge ? u[k] : u[k] + alpha * (sum[k] - (flat ? 4 : 6) * u[k]);
    }
    store<WIDE>(to + at, next, left);
  } else {
    store<WIDE>(to + at, u, left);
  }
}

template <>
void run_custom<float>(thrust::device_vector<float>& in, thrust::device_vector<float>& out,
                       thrust::device_vector<float>& scratch, int nx, int ny, int nz, int steps,
                       float alpha) {
  const int lanes = (nx + 3) / 4;
  const dim3 grid((lanes + LANES - 1) / LANES, (ny + HEIGHT - 1) / HEIGHT, nz);
  const float* from = in.data().get();
  for (int left = steps; left > 0; --left) {
    float* to = (left % 2 ? out : scratch).data().get();
    const auto kernel = nx % 4 == 0 ? step<true> : step<false>;
    kernel<<<grid, dim3(LANES, HEIGHT)>>>(from, to, nx, ny, nz, alpha);
    from = to;
  }
}
