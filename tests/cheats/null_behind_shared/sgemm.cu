// Reads shared memory through a pointer that is then a small global address: a check in one space
// must not count in another.
// Stopped by: the simulator remembers a checked access for one space only
// CPU: RE out-of-bounds
// GPU: RE
#include "gemm.cuh"

__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  __shared__ float tile[1024];
  for (int t = 32 * threadIdx.y + threadIdx.x; t < 1024; t += 256) tile[t] = 1;
  __syncthreads();
  volatile float* from[2] = {tile, (volatile float*)256};
  float seen = 0;
  for (int turn = 0; turn < 2; ++turn) seen += from[turn * (m > 0)][threadIdx.x];
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[(size_t)i * k + p] * B[p + (size_t)j * k];
  sum += seen * 0;
  C[i + (size_t)j * m] = sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(A, B, C, m, n, k);
}
