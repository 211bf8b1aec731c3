#include <cassert>
#include <cstdio>
#include "gemm.cuh"
__global__ void talk(const float* a) {
  assert(a != nullptr);
  printf("%f", a[threadIdx.x]);
}
template <>
void run_custom<float>(thrust::device_vector<float>& a, thrust::device_vector<float>&,
                       thrust::device_vector<float>&, const int, const int, const int) {
  talk<<<1, 1>>>(a.data().get());
}
