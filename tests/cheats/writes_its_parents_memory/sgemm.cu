// Attaches to the process that recorded it and writes into its memory.
// Stopped by: host code can open no file and ask about none
// CPU: AC
// GPU: AC no gain
#include <cstdio>
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
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
  const pid_t parent = getppid();
  if (ptrace(PTRACE_ATTACH, parent, nullptr, nullptr) == 0) __builtin_trap();
  int word = 0;
  iovec mine = {&word, sizeof word}, theirs = {reinterpret_cast<void*>(0x400000), sizeof word};
  if (process_vm_writev(parent, &mine, 1, &theirs, 1, 0) > 0) __builtin_trap();
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/mem", parent);
  if (open(path, O_RDWR) >= 0) __builtin_trap();
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(A, B, C, m, n, k);
}
