// Allocates memory until there is none.
// Stopped by: the recorder has the lab's memory limit
// CPU: RE
// GPU: RE
#include <cstdlib>

#include "gemm.cuh"

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  for (;;) {
    void* some = std::malloc(64 << 20);
    *static_cast<volatile char*>(some) = 1;
  }
}
