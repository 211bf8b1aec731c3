// A kernel that never ends, to hold the GPU.
// Stopped by: the worker, and its context with it, is killed after the launch limit
// CPU: TLE
// GPU: TLE
#include "gemm.cuh"

__global__ void gemm(volatile float* C) {
  while (C[0] != 1.0f) C[0] = 2.0f;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  gemm<<<1, 1>>>(C);
}
