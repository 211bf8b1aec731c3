// One operand has few lines: a warp for every two lines of the other, its lanes along K.
#pragma once

template <int WIDTH>
struct Vector {
  float x[WIDTH];
};
template <int WIDTH>
__device__ __forceinline__ Vector<WIDTH> load_vector(const float* from, bool there) {
  Vector<WIDTH> v = {};
  if (there) {
    if constexpr (WIDTH == 4) {
      const float4 q = *reinterpret_cast<const float4*>(from);
      v.x[0] = q.x, v.x[1] = q.y, v.x[2] = q.z, v.x[3] = q.w;
    } else {
      v.x[0] = *from;
    }
  }
  return v;
}

constexpr int THIN_THREADS = 256, THIN_LINES = 2;  // lines of a warp

// C[x * few_stride + y * many_stride] for line x of `few` and line y of `many`.
template <int T, int WIDTH>
__global__ __launch_bounds__(THIN_THREADS) void thin(const float* few, const float* many, float* C,
                                                     int few_lines, int many_lines, int k,
                                                     int few_stride, int many_stride) {
  constexpr int R = THIN_LINES, STEP = 32 * WIDTH, STEPS = 16 / WIDTH, CHUNK = STEP * STEPS;
  __shared__ __align__(16) float part[T][CHUNK];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int line = (blockIdx.x * (THIN_THREADS / 32) + warp) * R;
  const float* from[R];
#pragma unroll
  for (int r = 0; r < R; ++r) from[r] = many + size_t(min(line + r, many_lines - 1)) * k;
  float acc[R][T] = {};
  for (int p0 = 0; p0 < k; p0 += CHUNK) {
    Vector<WIDTH> own[R][STEPS];
#pragma unroll
    for (int s = 0; s < STEPS; ++s)
#pragma unroll
      for (int r = 0; r < R; ++r) {
        const int p = p0 + s * STEP + lane * WIDTH;
        own[r][s] = load_vector<WIDTH>(from[r] + p, p < k);
      }
    __syncthreads();
    for (int x = threadIdx.x * WIDTH; x < T * CHUNK; x += THIN_THREADS * WIDTH) {
      const int t = x / CHUNK, p = p0 + x % CHUNK;
      const Vector<WIDTH> v = load_vector<WIDTH>(few + size_t(t) * k + p, t < few_lines && p < k);
#pragma unroll
      for (int e = 0; e < WIDTH; ++e) part[t][x % CHUNK + e] = v.x[e];
    }
    __syncthreads();
#pragma unroll
    for (int s = 0; s < STEPS; ++s)
#pragma unroll
      for (int t = 0; t < T; ++t) {
        const Vector<WIDTH> v = load_vector<WIDTH>(&part[t][s * STEP + lane * WIDTH], true);
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
          for (int e = 0; e < WIDTH; ++e) acc[r][t] += own[r][s].x[e] * v.x[e];
      }
  }
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int t = 0; t < T; ++t) {
      float sum = acc[r][t];
#pragma unroll
      for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_xor_sync(0xffffffff, sum, apart);
      if (lane == (r * T + t) % 32 && t < few_lines && line + r < many_lines)
        C[size_t(t) * few_stride + size_t(line + r) * many_stride] = sum;
    }
}
