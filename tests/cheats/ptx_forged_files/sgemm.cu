// Ends the kernel early to name files of its own, so that its fault seems to be in them.
// Stopped by: excerpts come from the submission's own files only
// CPU: RE out-of-bounds
// GPU: RE
#include "gemm.cuh"

__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x, j = blockIdx.y;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[(size_t)i * k + p] * B[p + (size_t)j * k];
  asm volatile(".loc 99 1 1\nst.global.f32 [%0+268435456], %1;" ::"l"(C), "f"(sum));
  C[i + (size_t)j * m] = sum;
  asm volatile("ret; }\n.file 99 \"/etc/passwd\"\n.func hidden() {");
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  gemm<<<dim3(m, n), 1>>>(A, B, C, m, n, k);
}
