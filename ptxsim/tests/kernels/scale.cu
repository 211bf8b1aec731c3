extern "C" __global__ void scale(const float* x, float* y, float factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = factor * x[i];
}
