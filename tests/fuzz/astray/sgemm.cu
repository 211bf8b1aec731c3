// All lanes but one read through a null pointer. UBSan once found that the engine made pointers of their addresses.
#include "gemm.cuh"

__global__ void gemm(const float* A, float* C) {
  const float* from = threadIdx.x ? nullptr : A;
  asm volatile("" : "+l"(from));  // nvcc would take it that none is null
  C[threadIdx.x] = from[3];
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  gemm<<<1, 32>>>(d_A.data().get(), d_C.data().get());
}
