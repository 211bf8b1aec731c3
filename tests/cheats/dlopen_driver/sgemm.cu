// Loads the CUDA driver by itself, to launch behind the recorder's back.
// Stopped by: only recorded launches reach the GPU; the host code runs where there is none
// CPU: FE launched no kernel
// GPU: FE
#include <dlfcn.h>

#include "gemm.cuh"

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  float *A = d_A.data().get(), *B = d_B.data().get(), *C = d_C.data().get();
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return;
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto set = reinterpret_cast<int (*)(void*, unsigned char, size_t)>(dlsym(driver, "cuMemsetD8_v2"));
  if (init && set && init(0) == 0) set(C, 0, sizeof(float) * m * n);
}
