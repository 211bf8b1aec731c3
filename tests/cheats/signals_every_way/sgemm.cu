// Sends SIGKILL to its parent and to every process that it may signal.
// Stopped by: host code's filter of system calls refuses it
// CPU: AC
// GPU: AC no gain
#include <csignal>
#include <sys/syscall.h>
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
  kill(parent, SIGKILL);
  kill(1, SIGKILL);
  syscall(SYS_tkill, parent, SIGKILL);
  syscall(SYS_tgkill, parent, parent, SIGKILL);
  siginfo_t info = {};
  info.si_code = SI_QUEUE;
  syscall(SYS_rt_sigqueueinfo, parent, SIGKILL, &info);
  const int fd = syscall(SYS_pidfd_open, parent, 0);
  if (fd >= 0) syscall(SYS_pidfd_send_signal, fd, SIGKILL, nullptr, 0);
  kill(-1, SIGKILL);
  gemm<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(A, B, C, m, n, k);
}
