// Multiplies for this call and the next three at once, in one launch four times as large, and only
// copies in those: a launch of many products costs less than many launches.
// Stopped by: inputs are new for every launch, and every output is compared
// CPU: WA the first call is right, the second is not
// GPU: WA the first call is right, a later one is not
#include "gemm.cuh"

constexpr int CALLS = 4;
__device__ int call;

__global__ void batch(const float* A, const float* B, float* kept, int m, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n || call % CALLS != 0) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[(size_t)i * k + p] * B[p + (size_t)j * k];
  kept[i + (size_t)j * m + (size_t)blockIdx.z * m * n] = sum;
}

__global__ void hand_out(const float* kept, float* C, int count) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < count) C[at] = kept[at + (size_t)(call % CALLS) * count];
}

__global__ void next() { ++call; }

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  static float* kept = nullptr;
  if (kept == nullptr) cudaMalloc(&kept, sizeof(float) * CALLS * m * n);
  batch<<<dim3((m + 31) / 32, (n + 7) / 8, CALLS), dim3(32, 8)>>>(A, B, kept, m, n, k);
  hand_out<<<(m * n + 255) / 256, 256>>>(kept, C, m * n);
  next<<<1, 1>>>();
}
