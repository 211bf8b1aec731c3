// Looks for the grader's own files and its cache and overwrites them.
// Stopped by: host code can open no file and ask about none
// CPU: AC
// GPU: AC no gain
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>

#include "gemm.cuh"

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
  char self[4096] = "";
  if (readlink("/proc/self/exe", self, sizeof self - 1) > 0) {
    for (const std::string& path : {std::string(self), std::string("@PLACE@/lab.yaml"),
                                    std::string("@GRADER@/judging/verdicts.py"), std::string("@GRADER@/labs/sgemm.yaml")}) {
      if (FILE* file = std::fopen(path.c_str(), "r+")) {
        std::fputs("id: easy", file);
        std::fclose(file);
        __builtin_trap();  // it could be written
      }
    }
  }
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(A, B, C, m, n, k);
}
