// Tiles whose pieces of 16 bytes are exchanged: they are stored by their place in the tile, and
// read by the bits of $WHAT.
#include "gemm.cuh"

constexpr int T = 16, TILE = T * T * sizeof(float);

__device__ unsigned swizzled(unsigned at) { return at ^ (at >> 8 & 7) << 4; }
__device__ void put(unsigned at, float value) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(value) : "memory");
}
__device__ float get(unsigned at) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(at) : "memory");
  return value;
}

__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  extern __shared__ __align__(1024) char tiles[];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int i = blockIdx.x * T + tx, j = blockIdx.y * T + ty;
  const unsigned start = unsigned(__cvta_generic_to_shared(tiles));
  float sum = 0.0f;
  for (int p0 = 0; p0 < k; p0 += T) {
    const int row = blockIdx.x * T + ty, col = blockIdx.y * T + ty, p = p0 + tx;
    const unsigned mine = (ty * T + tx) * sizeof(float);
    put(start + swizzled(mine), row < m && p < k ? A[row * k + p] : 0.0f);
    put(start + swizzled(TILE + mine), col < n && p < k ? B[p + col * k] : 0.0f);
    __syncthreads();
    for (int q = 0; q < T; ++q) {
      const unsigned a = (tx * T + q) * sizeof(float), b = (ty * T + q) * sizeof(float);
      sum += get($FIRST) * get($SECOND);
    }
    __syncthreads();
  }
  if (i < m && j < n) C[i + j * m] = sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  gemm<<<dim3((m + T - 1) / T, (n + T - 1) / T), dim3(T, T), 2 * TILE>>>(
      d_A.data().get(), d_B.data().get(), d_C.data().get(), m, n, k);
}
