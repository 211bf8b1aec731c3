// Leaves run_custom through longjmp to a place that it set up in an earlier call.
// Stopped by: each size is recorded in a process of its own
// CPU: RE
// GPU: RE
#include <csetjmp>

#include "gemm.cuh"

std::jmp_buf back;

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  std::longjmp(back, 1);
}
