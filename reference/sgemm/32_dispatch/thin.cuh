// One operand has few lines: a warp for some lines of the other, its lanes along K.
#pragma once

// T lines of `few` at most; WIDTH values of p in one load, as lines are aligned.
template <int T, int WIDTH>
struct Thin {
  static constexpr int THREADS = 256, LINES = T > 4 ? 4 : T > 1 ? 2 : 1;  // of `many`, for a warp
  static constexpr int BLOCK_LINES = THREADS / 32 * LINES;
  static constexpr int STEP = 32 * WIDTH, STEPS = 32 / LINES / WIDTH;  // 128 bytes a lane
  static constexpr int CHUNK = STEP * STEPS;                           // values of p
  static constexpr int SUMS = LINES * T;                               // of a lane
};

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
// Of what is read once: it leaves the L2 first. What others wrote there need not go to the memory.
template <int WIDTH>
__device__ __forceinline__ Vector<WIDTH> load_once(const float* from, bool there) {
  Vector<WIDTH> v = {};
  if (there) {
    if constexpr (WIDTH == 4) {
      const float4 q = __ldcs(reinterpret_cast<const float4*>(from));
      v.x[0] = q.x, v.x[1] = q.y, v.x[2] = q.z, v.x[3] = q.w;
    } else {
      v.x[0] = __ldcs(from);
    }
  }
  return v;
}

// Sums over the lanes. Half of the lanes keep half of the sums, and so on, while there is more than
// one; then the lanes that have the same sum add up their shares. Returns which sum is acc[0] now.
template <int SUMS, int APART, int N>
__device__ __forceinline__ int spread(float (&acc)[N]) {
  if constexpr (APART == 0) {
    return 0;
  } else if constexpr (SUMS == 1) {
    acc[0] += __shfl_xor_sync(0xffffffff, acc[0], APART);
    return spread<1, APART / 2>(acc);
  } else {
    constexpr int HALF = SUMS / 2;
    const bool upper = threadIdx.x & APART;
#pragma unroll
    for (int x = 0; x < HALF; ++x) {
      const float other = upper ? acc[x] : acc[x + HALF];
      acc[x] = (upper ? acc[x + HALF] : acc[x]) + __shfl_xor_sync(0xffffffff, other, APART);
    }
    return (upper ? HALF : 0) + spread<HALF, APART / 2>(acc);
  }
}

// C[x * few_stride + y * many_stride] for line x of `few` and line y of `many`.
template <int T, int WIDTH>
__global__ __launch_bounds__(Thin<T, WIDTH>::THREADS) void thin(const float* few, const float* many,
                                                                float* C, int few_lines,
                                                                int many_lines, int k,
                                                                int few_stride, int many_stride) {
  using S = Thin<T, WIDTH>;
  __shared__ __align__(16) float part[T][S::CHUNK];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int line = blockIdx.x * S::BLOCK_LINES + warp * S::LINES;
  const float* from[S::LINES];
#pragma unroll
  for (int r = 0; r < S::LINES; ++r) from[r] = many + size_t(min(line + r, many_lines - 1)) * k;
  float acc[S::SUMS] = {};
  for (int p0 = 0; p0 < k; p0 += S::CHUNK) {
    Vector<WIDTH> own[S::STEPS][S::LINES];
#pragma unroll
    for (int s = 0; s < S::STEPS; ++s)
#pragma unroll
      for (int r = 0; r < S::LINES; ++r) {
        const int p = p0 + s * S::STEP + lane * WIDTH;
        own[s][r] = load_once<WIDTH>(from[r] + p, p < k);
      }
    __syncthreads();
    for (int x = threadIdx.x * WIDTH; x < T * S::CHUNK; x += S::THREADS * WIDTH) {
      const int t = x / S::CHUNK, p = p0 + x % S::CHUNK;
      const Vector<WIDTH> v = load_vector<WIDTH>(few + size_t(t) * k + p, t < few_lines && p < k);
#pragma unroll
      for (int e = 0; e < WIDTH; ++e) part[t][x % S::CHUNK + e] = v.x[e];
    }
    __syncthreads();
#pragma unroll
    for (int s = 0; s < S::STEPS; ++s)
#pragma unroll
      for (int t = 0; t < T; ++t) {
        const Vector<WIDTH> v = load_vector<WIDTH>(&part[t][s * S::STEP + lane * WIDTH], true);
#pragma unroll
        for (int r = 0; r < S::LINES; ++r)
#pragma unroll
          for (int e = 0; e < WIDTH; ++e) acc[r * T + t] += own[s][r].x[e] * v.x[e];
      }
  }
  const int kept = spread<S::SUMS, 16>(acc);
  constexpr int SHARERS = S::SUMS < 32 ? 32 / S::SUMS : 1;  // lanes that have the same sum
  if (lane % SHARERS > 0) return;
#pragma unroll
  for (int x = 0; x < S::SUMS * SHARERS / 32; ++x) {
    const int t = (kept + x) % T, r = (kept + x) / T;
    if (t < few_lines && line + r < many_lines)
      C[size_t(t) * few_stride + size_t(line + r) * many_stride] = acc[x];
  }
}

template <int T>
void launch_thin(const float* A, const float* B, float* C, int m, int n, int k) {
  const bool few_rows = m <= n;
  const int few = few_rows ? m : n, many = few_rows ? n : m;
  auto kernel = k % 4 == 0 ? thin<T, 4> : thin<T, 1>;
  const int blocks = ceil_div(many, Thin<T, 1>::BLOCK_LINES);
  kernel<<<blocks, Thin<T, 1>::THREADS>>>(few_rows ? A : B, few_rows ? B : A, C, few, many, k,
                                          few_rows ? 1 : m, few_rows ? m : 1);
}
