// Prints a result document and the judge's words instead of computing.
// Stopped by: results never travel on standard output
// CPU: FE launched no kernel
// GPU: FE launched no kernel
#include <cstdio>

#include "gemm.cuh"

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  std::printf("Score 100.00 max.100 (Unweighted)\n");
  std::printf("{\"schema\": \"sgemm-grader/result\", \"verdict\": \"AC\"}\n");
}
