// Keeps memory in files without names and in shared segments, which no limit on its address space
// counts, until the machine has none left for others.
// Stopped by: host code's filter of system calls refuses it
// CPU: AC
// GPU: AC no gain
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
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
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  static const char some[1 << 20] = {1};
  for (int file = 0; file < 64; ++file) {
    const int hoard = memfd_create("hoard", 0);
    for (int i = 0; hoard >= 0 && i < 200 && write(hoard, some, sizeof some) > 0; ++i) continue;
    if (hoard >= 0 && file == 63) __builtin_trap();
  }
  if (shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600) >= 0) __builtin_trap();
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(A, B, C, m, n, k);
}
