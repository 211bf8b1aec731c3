// Sends SIGKILL to the process that started it.
// Stopped by: host code's filter of system calls refuses it
// CPU: FE launched no kernel
// GPU: FE launched no kernel
#include <csignal>
#include <unistd.h>

#include "gemm.cuh"

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  kill(getppid(), SIGKILL);
  kill(-1, SIGKILL);
}
