// Asks the host compiler by pragma and attribute to write dumps, load a plugin, and by assembler
// directives to write listings.
// Stopped by: the compiler writes only to a scratch folder, and no later step reads its files by
// name
// CPU: AC
// GPU: AC no gain
#include "gemm.cuh"

#pragma GCC optimize("-fdump-tree-all=../out/host.o", "-fplugin=./evil.so", "-save-temps")
#pragma GCC optimize("-fprofile-generate=../out", "-flto", "-wrapper ./evil")
#pragma comment(linker, "-plugin ./evil.so")
asm(".linkonce\n.ident \"-fplugin=./evil.so\"\n.list\n.title \"listing\"\n.psize 0\n.nolist");
__attribute__((optimize("-fdump-rtl-all"))) inline void dumped() {}

__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[(size_t)i * k + p] * B[p + (size_t)j * k];
  C[i + (size_t)j * m] = sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(A, B, C, m, n, k);
}
