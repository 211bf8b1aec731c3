// Computes once, keeps C in a device variable and returns it every time.
// Stopped by: inputs are new for every launch, and every output is compared
// CPU: WA the first call is right, the second is not: the previous call changed kept
// GPU: WA
#include "gemm.cuh"

constexpr int ROOM = 4 << 20;
__device__ float kept[ROOM];
__device__ int calls;

__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n) return;
  if (calls > 0 && i + j * m < ROOM) {
    C[i + j * m] = kept[i + j * m];
    return;
  }
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[(size_t)i * k + p] * B[p + (size_t)j * k];
  C[i + j * m] = sum;
  if (i + j * m < ROOM) kept[i + j * m] = sum;
}

__global__ void count() { ++calls; }

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(A, B, C, m, n, k);
  count<<<1, 1>>>();
}
