// Copies A to C, as if nothing had to be computed.
// Stopped by: every element is compared
// CPU: WA
// GPU: WA
#include "gemm.cuh"

__global__ void copy(const float* A, float* C, int count, int most) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < count) C[at] = A[at % most];
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  copy<<<(m * n + 255) / 256, 256>>>(d_A.data().get(), d_C.data().get(), m * n, m * k);
}
