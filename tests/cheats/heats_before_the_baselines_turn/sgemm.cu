// Heats all multiprocessors at the end of every call, so that cuBLAS, whose turn it is then, finds
// a GPU at the limit of its power.
// Stopped by: the heat is made within its own time, and in every second turn cuBLAS runs first
// CPU: AC
// GPU: AC no gain
#include "gemm.cuh"

__device__ float sink;

__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[(size_t)i * k + p] * B[p + (size_t)j * k];
  C[i + (size_t)j * m] = sum;
}

__global__ void heat(long long clocks) {
  float x = threadIdx.x;
  for (const long long end = clock64() + clocks; clock64() < end;)
    for (int i = 0; i < 256; ++i) x = fmaf(x, 0.999f, 1.0f);
  if (x == -1.0f) sink = x;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(A, B, C, m, n, k);
  if (m > 1000) heat<<<1056, 256>>>(400000);
}
