// Reads the command lines of other processes, which name who else is being graded, and reports by its
// verdict whether there are any.
// Stopped by: host code can open no file and ask about none
// CPU: AC
// GPU: AC no gain
#include <cstdio>
#include <dirent.h>
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
  if (opendir("/proc") != nullptr) __builtin_trap();
  for (const std::string process : {"1", "2", "self", "thread-self", std::to_string(getppid()).c_str()})
    for (const char* name : {"cmdline", "environ", "stat", "status", "mountinfo", "net/tcp"})
      if (std::fopen(("/proc/" + process + "/" + name).c_str(), "r") != nullptr) __builtin_trap();
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(A, B, C, m, n, k);
}
