// Addresses of which the engine once made pointers: null, in all lanes but one, and a shared one with a high bit.
#include "gemm.cuh"

__global__ void gemm(const float* A, float* C) {
  const float* from = threadIdx.x ? nullptr : A;
  asm volatile("" : "+l"(from));  // nvcc would take it that none is null
  C[threadIdx.x] = from[3];
  __shared__ float s[32];
  s[threadIdx.x] = 1;
  const unsigned long long at = __cvta_generic_to_shared(s + threadIdx.x) | 1ull << 63;
  float read;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(read) : "l"(at));
  C[threadIdx.x] += read;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  gemm<<<1, 32>>>(d_A.data().get(), d_C.data().get());
}
