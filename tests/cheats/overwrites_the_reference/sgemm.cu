// Writes zeros to C and to everything behind it, where the right answer may be.
// Stopped by: canaries surround every buffer; on a GPU nothing is mapped beyond them
// CPU: RE out-of-bounds
// GPU: RE
#include "gemm.cuh"

__global__ void gemm(float* C, size_t count) {
  const size_t at = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (at < count) C[at] = 0.0f;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  const size_t count = 2 * size_t(m) * n + 1024;
  gemm<<<unsigned((count + 255) / 256), 256>>>(C, count);
}
