// Your kernel and the code that launches it. This one is right and slow: a thread for each row, and
// neighbouring threads read elements that are a row apart.
//
//   grade submissions/NAME --lab softmax          compile it, run it in the simulator, check it
#include "softmax.cuh"

__global__ void softmax(const float* in, float* out, int rows, int columns) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* x = in + size_t(row) * columns;
  float* y = out + size_t(row) * columns;
  float most = x[0], sum = 0;
  for (int j = 1; j < columns; ++j) most = fmaxf(most, x[j]);
  for (int j = 0; j < columns; ++j) sum += expf(x[j] - most);
  for (int j = 0; j < columns; ++j) y[j] = expf(x[j] - most) / sum;
}

template <>
void run_custom<float>(thrust::device_vector<float>& in, thrust::device_vector<float>& out,
                       int rows, int columns) {
  softmax<<<(rows + 127) / 128, 128>>>(in.data().get(), out.data().get(), rows, columns);
}
