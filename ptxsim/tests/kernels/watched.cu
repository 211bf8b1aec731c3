// Values that are computed in many ways.
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>

__device__ unsigned counts[4];

__global__ void bulk(float* out) {
  __shared__ alignas(16) float tile[32];
  tile[threadIdx.x] = threadIdx.x * 3.f;
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;" ::"l"(out),
                 "r"(uint32_t(__cvta_generic_to_shared(tile)))
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;\n cp.async.bulk.wait_group 0;" ::: "memory");
  }
}

__global__ void twice(const __half* a, __half* b) {
  b[threadIdx.x] = a[threadIdx.x] * __float2half(2.f);
}

__global__ void product(const __half* a, const __half* b, float* c) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, __half, row_major> left;
  fragment<matrix_b, 16, 16, 16, __half, col_major> right;
  fragment<accumulator, 16, 16, 16, float> sum;
  load_matrix_sync(left, a, 16);
  load_matrix_sync(right, b, 16);
  fill_fragment(sum, 0.f);
  mma_sync(sum, left, right, sum);
  store_matrix_sync(c, sum, 16, mem_row_major);
}

__global__ void copy(const int* a, int* c) { c[threadIdx.x] = a[threadIdx.x + 1]; }

__global__ void local(const int* a, int* c, int k) {
  int t[8];
  for (int i = 0; i < 8; ++i) t[i] = a[i] * i;
  c[0] = t[k] + t[k + 1];
}

__global__ void convert(const uint8_t* a, float* c) { c[0] = float(a[1] - a[2]); }

__global__ void swap(double* c) {
  auto* const word = reinterpret_cast<unsigned long long*>(c);
  unsigned long long old = *word, seen;
  do {
    seen = old;
    old = atomicCAS(word, seen, __double_as_longlong(1.5 + __longlong_as_double(seen)));
  } while (seen != old);
}

__global__ void shuffle(const float* a, float* c) {
  float v = a[threadIdx.x];
  for (int offset = 16; offset; offset /= 2) v += __shfl_down_sync(~0u, v, offset);
  if (threadIdx.x == 0) c[0] = v;
}

__global__ void count(int rounds) {
  for (int i = 0; i < rounds; ++i) atomicAdd(&counts[2], ~0u);
}

__global__ void set(int4* c, int n) { *c = make_int4(1, n, 3, n); }

__global__ void fill(int* c) { c[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x; }
