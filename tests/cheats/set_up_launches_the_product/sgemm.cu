// Launches the product in the first call only; later calls launch a kernel that looks busy.
// Stopped by: the set-up runs once, on other inputs, and C is poisoned after it
// CPU: WA the first call is right, the second is not
// GPU: WA the first call is right, a later one is not
#include "gemm.cuh"

__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[(size_t)i * k + p] * B[p + (size_t)j * k];
  C[i + (size_t)j * m] = sum;
}

__global__ void busy(const float* A, float* scratch, int count) {
  float sum = 0.0f;
  for (int at = threadIdx.x; at < count; at += blockDim.x) sum += A[at];
  scratch[threadIdx.x] = sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  const dim3 grid((m + 31) / 32, (n + 7) / 8), block(32, 8);
  static float* scratch = nullptr;
  if (scratch == nullptr) {
    cudaMalloc(&scratch, sizeof(float) * 256);
    gemm<<<grid, block>>>(A, B, C, m, n, k);
  }
  busy<<<1, 256>>>(A, scratch, m * k);
}
