// Rung 1: a thread for each element.
//
// Changed:  the start of the ladder. Block and thread together are the element's index, and as many
//           blocks as it takes cover all elements; the threads behind the last one do nothing.
// Why:      neighbouring threads touch neighbouring elements, so a warp's load is 128 bytes in a
//           row. The grid is rounded up: without the comparison the last block would write past
//           the end.
// Bound:    DRAM: 12 bytes an element, eight read and four written. A thread has 8 bytes on the
//           way, then it ends, and another block has to be started in its place.
// Command:  grade --lab saxpy reference/saxpy/01_one_element
#include "saxpy.cuh"

constexpr int THREADS = 256;

__global__ void saxpy(const float* x, float* y, int n, float alpha) {
  const int i = blockIdx.x * THREADS + threadIdx.x;
  if (i < n) y[i] = alpha * x[i] + y[i];
}

template <>
void run_custom<float>(thrust::device_vector<float>& x, thrust::device_vector<float>& y, int n,
                       float alpha) {
  saxpy<<<(n + THREADS - 1) / THREADS, THREADS>>>(x.data().get(), y.data().get(), n, alpha);
}
