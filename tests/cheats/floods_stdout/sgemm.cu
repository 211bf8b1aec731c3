// Prints endlessly.
// Stopped by: output beyond a limit is discarded, and the call has a time limit
// CPU: TLE
// GPU: TLE
#include <cstdio>

#include "gemm.cuh"

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  for (;;) std::puts("Score 100.00 max.100 (Unweighted)");
}
