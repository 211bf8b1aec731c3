// Computes 2·A·B and halves it in a second kernel, which begins while the first one still runs: its
// time would be hidden.
// Stopped by: the simulator checks what a launch does before it waits; on a GPU every output is
// compared
// Architecture: 90
// CPU: WA before it has waited for the kernel launched before this one
// GPU: WA
#include "gemm.cuh"

constexpr int BLOCKS = 264;  // few enough that the second kernel finds room beside the first

__global__ void twice(const float* A, const float* B, float* C, int m, int n, int k) {
  cudaTriggerProgrammaticLaunchCompletion();
  for (size_t e = blockIdx.x * blockDim.x + threadIdx.x; e < (size_t)m * n;
       e += gridDim.x * blockDim.x) {
    const size_t i = e % m, j = e / m;
    float sum = 0.0f;
    for (int p = 0; p < k; ++p) sum += A[i * k + p] * B[p + j * k];
    C[e] = 2 * sum;
  }
}

__global__ void halve(float* C, int m, int n) {
  for (size_t e = blockIdx.x * blockDim.x + threadIdx.x; e < (size_t)m * n;
       e += gridDim.x * blockDim.x)
    C[e] *= 0.5f;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  twice<<<BLOCKS, 256>>>(A, B, C, m, n, k);

  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(BLOCKS);
  config.blockDim = dim3(256);
  config.attrs = &early;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, halve, C, m, n);
}
