// Fills every folder it can write to.
// Stopped by: host code can open no file and ask about none
// CPU: AC
// GPU: AC no gain
#include <csignal>
#include <cstdio>
#include <fcntl.h>
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
  std::signal(SIGXFSZ, SIG_IGN);
  long taken = 0;
  for (const char* folder : {"/tmp", "/dev/shm", "/dev", "/var/tmp", "/", "."})
    for (int file = 0; file < 64; ++file) {
      char path[64];
      std::snprintf(path, sizeof path, "%s/fill%d", folder, file);
      const int fd = open(path, O_CREAT | O_WRONLY, 0600);
      if (fd >= 0 && posix_fallocate(fd, 0, 64 << 20) == 0) taken += 64 << 20;
      close(fd);
    }
  if (taken > (1L << 30)) __builtin_trap();
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(A, B, C, m, n, k);
}
