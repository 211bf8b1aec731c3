// Counts its calls on the host; every third one only launches a kernel that writes nothing.
// Stopped by: the third call is recorded too; if it differs from the second, it is judged
// CPU: WA
// GPU: WA
#include "gemm.cuh"

__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[(size_t)i * k + p] * B[p + (size_t)j * k];
  C[i + (size_t)j * m] = sum;
}

__global__ void nothing() {}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  const dim3 grid((m + 31) / 32, (n + 7) / 8), block(32, 8);
  static int calls = 0;
  if (++calls % 3) gemm<<<grid, block>>>(A, B, C, m, n, k);
  else nothing<<<1, 1>>>();
}
