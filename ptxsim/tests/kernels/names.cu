#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
#define KERNEL extern "C" __global__ void

// --- loads clamped to the end of a row

KERNEL clamped(float* a, float* b) {
  float v[4];
#pragma unroll
  for (int u = 0; u < 4; ++u) v[u] = a[min(149, threadIdx.x + u * blockDim.x)];
#pragma unroll
  for (int u = 0; u < 4; ++u)
    if (threadIdx.x + u * blockDim.x < 150) a[threadIdx.x + u * blockDim.x] = v[u] * 0.5f;
}
KERNEL clamped_in_shared_memory(float* a, float* b) {
  __shared__ float s[150];
  for (int i = threadIdx.x; i < 150; i += blockDim.x) s[i] = a[i];
  __syncthreads();
  float v[4];
#pragma unroll
  for (int u = 0; u < 4; ++u) v[u] = s[min(149, threadIdx.x + u * blockDim.x)];
#pragma unroll
  for (int u = 0; u < 4; ++u)
    if (threadIdx.x + u * blockDim.x < 150) s[threadIdx.x + u * blockDim.x] = v[u] * 0.5f;
  __syncthreads();
  for (int i = threadIdx.x; i < 150; i += blockDim.x) b[i] = s[i];
}
KERNEL clamped_and_used(float* a, float* b) {
  float v[4];
#pragma unroll
  for (int u = 0; u < 4; ++u) v[u] = a[min(149, threadIdx.x + u * blockDim.x)];
#pragma unroll
  for (int u = 0; u < 4; ++u) {
    b[threadIdx.x + u * blockDim.x] = v[u];
    if (threadIdx.x + u * blockDim.x < 150) a[threadIdx.x + u * blockDim.x] = v[u] * 0.5f;
  }
}
KERNEL clamped_behind_a_barrier(float* a, float* b) {
  float v[4];
#pragma unroll
  for (int u = 0; u < 4; ++u) v[u] = a[min(149, threadIdx.x + u * blockDim.x)];
  __syncthreads();
#pragma unroll
  for (int u = 0; u < 4; ++u)
    if (threadIdx.x + u * blockDim.x < 150) a[threadIdx.x + u * blockDim.x] = v[u] * 0.5f;
}

// --- where an access begins

KERNEL fours(const float* a, float* b) {
  const float4 v = *(const float4*)(a + 4 * threadIdx.x);
  b[threadIdx.x] = v.x + v.y;
}

// --- elements of arrays that nvcc splits

KERNEL last_element(int* a, int* b) {
  __shared__ int s[32];
  if (threadIdx.x == 63) s[31] = a[0];
  b[threadIdx.x] = s[31];
}
KERNEL both_elements(int* a, int* b) {
  __shared__ int s[2];
  if (threadIdx.x == 0) s[0] = a[0];
  __syncthreads();
  if (threadIdx.x == 63) s[1] = a[1];
  b[threadIdx.x] = s[0] + s[1];
}
KERNEL element_of_a_row(float* a, float* b) {
  __shared__ float s[4][8];
  if (threadIdx.x == 63) s[3][1] = a[0];
  b[threadIdx.x] = s[3][1];
}
KERNEL element_of_halves(__half* a, __half* b) {
  __shared__ __half s[64];
  if (threadIdx.x == 63) s[9] = a[0];
  b[threadIdx.x] = s[9];
}
KERNEL no_array(int* a, int* b) {
  __shared__ int done;
  if (threadIdx.x == 63) done = a[0];
  b[threadIdx.x] = done;
}
KERNEL elements_behind_a_barrier(int* a, int* b) {
  __shared__ int s[32];
  if (threadIdx.x == 63) s[31] = a[0], s[7] = a[1];
  __syncthreads();
  b[threadIdx.x] = s[31] + s[7];
}

// --- elements of other sizes. The index is in b[0].

#define MISALIGNED(name, T, per)                                                             \
  KERNEL name(T* a, const int* b) {                                                          \
    __shared__ __align__(16) T s[256];                                                       \
    for (int i = threadIdx.x; i < 256; i += blockDim.x) s[i] = a[i];                         \
    __syncthreads();                                                                         \
    __align__(16) T r[per];                                                                  \
    *reinterpret_cast<float4*>(r) = *reinterpret_cast<float4*>(&s[threadIdx.x ? 64 : b[0]]); \
    for (int i = 0; i < per; ++i) a[per * threadIdx.x + i] = r[i];                           \
  }
MISALIGNED(halves, __half, 8)
MISALIGNED(bfloats, __nv_bfloat16, 8)
MISALIGNED(bytes, unsigned char, 16)
MISALIGNED(floats, float, 4)
MISALIGNED(doubles, double, 2)
KERNEL dynamic_halves(__half* a, const int* b) {
  extern __shared__ __half d[];
  d[threadIdx.x] = a[threadIdx.x];
  a[threadIdx.x] = d[threadIdx.x ^ 63];
}
KERNEL dynamic_of_two_types(__half* a, float* b) {
  extern __shared__ __half d[];
  float* const f = reinterpret_cast<float*>(d + 64);
  d[threadIdx.x] = a[threadIdx.x];
  f[threadIdx.x] = b[threadIdx.x];
  a[threadIdx.x] = d[threadIdx.x ^ 63];
  b[threadIdx.x] = f[threadIdx.x];
}

// --- a race is not also a read of what nobody wrote

__device__ void product(const __half* a, float* b, bool waits) {
  using namespace nvcuda;
  __shared__ __align__(16) __half s[2][16 * 16];
  __shared__ __align__(16) float c[2][16 * 16];
  const int t = threadIdx.x;
  auto fill = [&](int stage, int k) {
    if (t >= 32) __pipeline_memcpy_async(&s[stage][(t - 32) * 8], &a[k + (t - 32) * 8], 16);
    __pipeline_commit();
  };
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  fill(0, 0);
  __pipeline_wait_prior(0);
  __syncthreads();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k < 3) fill((k + 1) % 2, 256 * k);
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
    wmma::load_matrix_sync(left, s[k % 2], 16);
    wmma::load_matrix_sync(right, s[k % 2], 16);
    wmma::mma_sync(sum, left, right, sum);
    __pipeline_wait_prior(0);
    if (waits) __syncthreads();
  }
  wmma::store_matrix_sync(c[t / 32], sum, 16, wmma::mem_row_major);
  __syncwarp();
  for (int i = t % 32; i < 256; i += 32) b[t / 32 * 256 + i] = c[t / 32][i];
}
KERNEL product_without_barrier(const __half* a, float* b) { product(a, b, false); }
KERNEL product_with_barrier(const __half* a, float* b) { product(a, b, true); }
KERNEL never_filled(const __half* a, float* b) {
  __shared__ float s[64];
  if (threadIdx.x < 32) s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  b[threadIdx.x] = s[threadIdx.x];
}

// --- both halves of a divergent barrier

KERNEL half_has_left(float* a, float* b) {
  for (unsigned stride = blockDim.x; stride >= 1; stride /= 2)
    if (threadIdx.x < stride) {
      a[threadIdx.x] += a[threadIdx.x + stride];
      __syncthreads();
    }
  if (threadIdx.x == 0) b[0] = a[0];  // LEFT
}
KERNEL all_meet(float* a, float* b) {
  for (unsigned stride = blockDim.x; stride >= 1; stride /= 2) {
    if (threadIdx.x < stride) a[threadIdx.x] += a[threadIdx.x + stride];
    __syncthreads();
  }
}

// --- a return ahead of a barrier

KERNEL returns_ahead(float* a, float* b) {
  __shared__ float s[64];
  if (threadIdx.x >= 40) return;  // RETURNED
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  b[threadIdx.x] = s[threadIdx.x] + s[63 - threadIdx.x];
}
KERNEL guards_alone(float* a, float* b) {
  __shared__ float s[64];
  s[threadIdx.x] = threadIdx.x < 40 ? a[threadIdx.x] : 0;
  __syncthreads();
  if (threadIdx.x < 40) b[threadIdx.x] = s[threadIdx.x] + s[63 - threadIdx.x];
}
KERNEL nobody_returns(float* a, float* b) {
  __shared__ float s[64];
  if (threadIdx.x < 32) s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  b[threadIdx.x] = s[threadIdx.x];  // UNFILLED
}

// --- what a library does. The offset is in b[0].

#line 1 "/opt/library/steps.cuh"
template <int N> struct Steps {
  // clang-format off: a line that is inlined at itself
  static __device__ __forceinline__ void go(float* p, int i) { p[i - N] = N; Steps<N - 1>::go(p, i); }
  // clang-format on
};
template <> struct Steps<0> {
  static __device__ __forceinline__ void go(float* p, int i) { p[i] = 0; }
};
__device__ __noinline__ void far(float* p, int i) { p[i] = 3; }
#line 1 "/home/student/sgemm.cu"
KERNEL recursive_in_a_library(float* a, const int* b) { Steps<3>::go(a, b[0]); }
KERNEL called_in_a_library(float* a, const int* b) {
  far(a, 0);
  far(a, b[0]);
}
