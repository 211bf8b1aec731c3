// Asks for all the dynamic shared memory that a block may have and declares 256 bytes besides, so
// that nothing runs, or finds what lies there; C would keep what somebody else left in it.
// Stopped by: a launch that no GPU of this architecture accepts is refused when it is recorded
// CPU: RE exceed
// GPU: RE exceed
#include "gemm.cuh"

extern __shared__ float tile[];

__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  __shared__ float sums[64];
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (threadIdx.y == 0) sums[threadIdx.x] = tile[threadIdx.x];
  __syncthreads();
  if (i < m && j < n) C[i + (size_t)j * m] = sums[threadIdx.x % 64] * A[0] * B[0] * k;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  int most = 0;
  cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
  cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8), most>>>(A, B, C, m, n, k);
}
