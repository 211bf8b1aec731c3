// Your kernel and the code that launches it. This one is right and slow: a single block does all
// the work.
//
//   grade submissions/NAME --lab saxpy        compile it, run it in the simulator, check it
#include "saxpy.cuh"

static constexpr int THREADS = 256;

__global__ void saxpy(const float* x, float* y, int n, float alpha) {
  for (int i = threadIdx.x; i < n; i += THREADS) y[i] = alpha * x[i] + y[i];
}

template <>
void run_custom<float>(thrust::device_vector<float>& x, thrust::device_vector<float>& y, int n,
                       float alpha) {
  saxpy<<<1, THREADS>>>(x.data().get(), y.data().get(), n, alpha);
}
