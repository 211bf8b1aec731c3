// Ends the process by abort.
// Stopped by: each size is recorded in a process of its own
// CPU: RE
// GPU: RE
#include <cstdlib>

#include "gemm.cuh"

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  std::abort();
}
