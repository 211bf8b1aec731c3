#include <cstddef>
#include <vector>
#include <cuda_runtime.h>
__global__ void kernel(float* x) { *x = 1; }
void launch(const std::vector<float*>& x) { kernel<<<1, 1>>>(x[0]); }
