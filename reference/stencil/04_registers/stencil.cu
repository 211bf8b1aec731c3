// Rung 4: rows and planes in registers.
//
// Changed:  a thread has four cells in each of two rows. In a box it walks up z, and the plane in
//           its registers becomes the one below. Neighbours along x come from the lanes beside, and
//           for the first and the last lane of a warp from memory.
// Why:      four loads for two rows instead of six, and in a box instead of ten: a step takes each
//           cell twice from the caches instead of three or five times.
// Bound:    DRAM. To get faster, a launch must do more than one step.
// Command:  grade --lab stencil reference/stencil/04_registers
#include "stencil.cuh"

constexpr int ROWS = 2, WARPS = 8, CLIMB = 32;  // of a thread; of a block; planes of a block

// `left` of the cells exist; WIDE: all four or none, and they are aligned.
template <bool WIDE>
__device__ float4 load(const float* from, int left) {
  float4 v = {};
  if (WIDE) {
    if (left > 0) v = *reinterpret_cast<const float4*>(from);
  } else {
    if (left > 0) v.x = from[0];
    if (left > 1) v.y = from[1];
    if (left > 2) v.z = from[2];
    if (left > 3) v.w = from[3];
  }
  return v;
}

template <bool WIDE>
__device__ void store(float* to, float4 v, int left) {
  if (WIDE) {
    if (left > 0) *reinterpret_cast<float4*>(to) = v;
  } else {
    if (left > 0) to[0] = v.x;
    if (left > 1) to[1] = v.y;
    if (left > 2) to[2] = v.z;
    if (left > 3) to[3] = v.w;
  }
}

__device__ float4 operator+(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__device__ float4 step(float4 u, float4 sum, float alpha, int count) {
  return make_float4(u.x + alpha * (sum.x - count * u.x), u.y + alpha * (sum.y - count * u.y),
                     u.z + alpha * (sum.z - count * u.z), u.w + alpha * (sum.w - count * u.w));
}

template <bool WIDE, bool FLAT>
__global__ void __launch_bounds__(32 * WARPS)
    step(const float* from, float* to, int nx, int ny, int nz, float alpha) {
  const int lane = threadIdx.x, x = (blockIdx.x * 32 + lane) * 4, left = nx - x;
  const int y = (blockIdx.y * WARPS + threadIdx.y) * ROWS, rows = min(ROWS, ny - y);
  const int bottom = FLAT ? 0 : blockIdx.z * CLIMB, top = FLAT ? 1 : min(nz, bottom + CLIMB);
  if (rows <= 0) return;  // all of a warp
  const size_t plane = size_t(nx) * ny;
  const int beside = lane == 0 ? -1 : 4;  // what a lane at the end of a warp lacks
  const bool ends = (lane == 0 && x > 0) || (lane == 31 && left > 4);
  float4 below[ROWS] = {}, u[ROWS + 2], above[ROWS];
  from += bottom * plane + size_t(y) * nx + x;
  to += bottom * plane + size_t(y) * nx + x;
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    above[r] = load<WIDE>(from + r * nx, r < rows ? left : 0);
    if (bottom > 0) below[r] = load<WIDE>(from + r * nx - plane, r < rows ? left : 0);
  }
  for (int z = bottom; z < top; ++z, from += plane, to += plane) {
    float other[ROWS];
    u[0] = load<WIDE>(from - nx, y > 0 ? left : 0);
    u[ROWS + 1] = load<WIDE>(from + ROWS * nx, y + ROWS < ny ? left : 0);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      other[r] = ends && r < rows ? from[r * nx + beside] : 0;
      u[r + 1] = above[r];
      if (!FLAT) above[r] = load<WIDE>(from + r * nx + plane, z + 1 < nz && r < rows ? left : 0);
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const float4 v = u[r + 1];
      float before = __shfl_up_sync(~0u, v.w, 1), after = __shfl_down_sync(~0u, v.x, 1);
      if (lane == 0) before = other[r];
      if (lane == 31) after = other[r];
      const float4 along = make_float4(before + v.y, v.x + v.z, v.y + v.w, v.z + after);
      float4 sum = along + u[r] + u[r + 2];
      if (!FLAT) sum = sum + below[r] + above[r];
      float4 next = step(v, sum, alpha, FLAT ? 4 : 6);
      if (x == 0) next.x = v.x;
      if (left == 4) next.w = v.w;
      if (!WIDE && left == 3) next.z = v.z;
      if (!WIDE && left == 2) next.y = v.y;
      if (!WIDE && left == 1) next.x = v.x;
      const bool edge = y + r == 0 || y + r == ny - 1 || (!FLAT && (z == 0 || z == nz - 1));
      store<WIDE>(to + r * nx, edge ? v : next, r < rows ? left : 0);
      below[r] = v;
    }
  }
}

template <>
void run_custom<float>(thrust::device_vector<float>& in, thrust::device_vector<float>& out,
                       thrust::device_vector<float>& scratch, int nx, int ny, int nz, int steps,
                       float alpha) {
  const int high = WARPS * ROWS;
  const dim3 grid((nx + 127) / 128, (ny + high - 1) / high, (nz + CLIMB - 1) / CLIMB);
  const float* from = in.data().get();
  for (int left = steps; left > 0; --left) {
    float* to = (left % 2 ? out : scratch).data().get();
    const auto wide = nz == 1 ? step<true, true> : step<true, false>;
    const auto narrow = nz == 1 ? step<false, true> : step<false, false>;
    const auto kernel = nx % 4 == 0 ? wide : narrow;
    kernel<<<grid, dim3(32, WARPS)>>>(from, to, nx, ny, nz, alpha);
    from = to;
  }
}
