// Two operations on two streams. One case for each name on the command line; what is in an even
// number of them is ordered.
#include <cstdio>
#include <cstdlib>
#include <string>

__global__ void fill(float* x, int from, int n) {
  const int i = from + blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = float(i);
}

__global__ void sum(const float* x, float* y, int n) {
  float total = 0;
  for (int i = 0; i < n; ++i) total += x[i];
  *y = total;
}

__global__ void add(int* counter) { atomicAdd(counter, 1); }

int main(int, char** argv) {
  const std::string name = argv[1];
  const int n = 256;
  cudaStream_t one, other, alone;
  cudaStreamCreate(&one), cudaStreamCreate(&other);
  cudaStreamCreateWithFlags(&alone, cudaStreamNonBlocking);
  cudaEvent_t done;
  cudaEventCreate(&done);
  float *x, *y, *pinned, *pageable = static_cast<float*>(std::malloc(n * 4));
  int* counter;
  cudaMalloc(&x, n * 4), cudaMalloc(&y, 2 * 4), cudaMalloc(&counter, 4);
  cudaMallocHost(&pinned, n * 4);
  cudaMemset(y, 0, 2 * 4), cudaMemset(x, 0, n * 4), cudaMemset(counter, 0, 4);
  cudaDeviceSynchronize();

  fill<<<1, n, 0, one>>>(x, 0, n);  // FILL
  if (name == "kernels") sum<<<1, 1, 0, other>>>(x, y, n);  // kernels
  if (name == "event") {
    cudaEventRecord(done, one);
    cudaStreamWaitEvent(other, done, 0);
    sum<<<1, 1, 0, other>>>(x, y, n);
  }
  if (name == "wrong event") {
    cudaEventRecord(done, other);
    cudaStreamWaitEvent(other, done, 0);
    sum<<<1, 1, 0, other>>>(x, y, n);  // wrong event
  }
  if (name == "host waits") {
    cudaStreamSynchronize(one);
    sum<<<1, 1, 0, other>>>(x, y, n);
  }
  if (name == "waits for the other") {
    cudaStreamSynchronize(other);
    sum<<<1, 1, 0, other>>>(x, y, n);  // waits for the other
  }
  if (name == "asks") {
    while (cudaStreamQuery(one) == cudaErrorNotReady) {}
    sum<<<1, 1, 0, other>>>(x, y, n);
  }
  if (name == "asks once") {
    cudaStreamQuery(one);
    sum<<<1, 1, 0, other>>>(x, y, n);  // asks once
  }
  if (name == "default") sum<<<1, 1>>>(x, y, n);
  if (name == "default between") {
    cudaMemsetAsync(counter, 1, 4);
    sum<<<1, 1, 0, other>>>(x, y, n);
  }
  if (name == "alone") {
    fill<<<1, n>>>(x, 0, n);
    sum<<<1, 1, 0, alone>>>(x, y, n);  // alone
  }
  if (name == "memset") cudaMemsetAsync(x, 0, n * 4, other);  // memset
  if (name == "into the device")
    cudaMemcpyAsync(x + n - 1, pageable, 4, cudaMemcpyHostToDevice, other);  // into the device
  if (name == "to the host")
    cudaMemcpyAsync(pageable, x, 4, cudaMemcpyDeviceToHost, other);  // to the host
  if (name == "halves") {
    cudaStreamSynchronize(one);
    fill<<<1, n / 2, 0, one>>>(x, 0, n);
    fill<<<1, n / 2, 0, other>>>(x, n / 2, n);
    sum<<<1, 1>>>(x, y, n);
  }
  if (name == "halves meet") {
    cudaStreamSynchronize(one);
    fill<<<1, n / 2 + 1, 0, one>>>(x, 0, n);
    fill<<<1, n / 2, 0, other>>>(x, n / 2, n);  // halves meet
  }
  if (name == "pinned") {
    cudaStreamSynchronize(one);
    cudaMemcpyAsync(pinned, x, n * 4, cudaMemcpyDeviceToHost, one);
    cudaMemcpyAsync(y, pinned, 4, cudaMemcpyHostToDevice, other);  // pinned
  }
  if (name == "pinned, in order") {
    cudaMemcpyAsync(pinned, x, n * 4, cudaMemcpyDeviceToHost, one);
    cudaStreamSynchronize(one);
    cudaMemcpyAsync(y, pinned, 4, cudaMemcpyHostToDevice, other);
  }
  if (name == "counters") {
    add<<<1, n, 0, one>>>(counter);
    add<<<1, n, 0, other>>>(counter);
  }
  if (name == "readers") {
    cudaDeviceSynchronize();
    sum<<<1, 1, 0, one>>>(x, y, n);
    sum<<<1, 1, 0, other>>>(x, y + 1, n);
  }
  if (name == "freed in order") {
    cudaFreeAsync(x, one);
    x = nullptr;
  }
  if (name == "freed") {
    cudaFreeAsync(x, other);  // freed
    x = nullptr;
  }
  if (name == "many") {
    for (int k = 0; k < 700; ++k) fill<<<1, 32, 0, k % 2 ? alone : one>>>(x, k % 2 * 128, 256);
    fill<<<1, 32, 0, other>>>(x, 0, 256);  // many
  }
  if (name == "called back") {
    cudaLaunchHostFunc(one, [](void*) {}, nullptr);
    sum<<<1, 1, 0, other>>>(x, y, n);
  }
  cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorName(cudaGetLastError()));
  std::free(pageable);
  cudaFree(x), cudaFree(y), cudaFree(counter), cudaFreeHost(pinned);
}
