// What programs of courses do, and all of it right. Ends with status 7.
#include <cstdio>
#include <cstring>
#include <vector>

__constant__ float factor;
__device__ int total, largest;

__global__ void scale(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = factor * in[i];
}

__global__ void count(const float* values, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    if (values[i] > 0) atomicAdd(&total, 1);
  if (threadIdx.x == 0) printf("counted %d\n", n);
}

__global__ void fill(int* rows, size_t pitch) {
  rows[blockIdx.x * (pitch / 4) + threadIdx.x] = blockIdx.x;
}

// Whoever sees an old value tries again.
__global__ void keep_largest(int n) {
  const int mine = (blockIdx.x * blockDim.x + threadIdx.x) * 7 % n;
  int old;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(old) : "l"(&largest));
  while (old < mine) {
    const int was = old;
    old = atomicCAS(&largest, was, mine);
    if (old == was) break;
  }
}

void add_one(void* data) { ++*static_cast<int*>(data); }

int main(int, char** argv) {
  const int n = 1000;
  std::vector<float> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = float(i % 3);
  const float two = 2;
  cudaMemcpyToSymbol(factor, &two, sizeof two);

  float *d_in, *d_out;
  cudaMalloc(&d_in, n * sizeof(float));
  cudaMalloc(&d_out, n * sizeof(float));
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaEvent_t begun, ended;
  cudaEventCreate(&begun);
  cudaEventCreate(&ended);
  cudaEventRecord(begun, stream);
  cudaMemcpyAsync(d_in, in.data(), n * sizeof(float), cudaMemcpyHostToDevice, stream);
  scale<<<(n + 255) / 256, 256, 0, stream>>>(d_in, d_out, n);
  count<<<1, 64, 0, stream>>>(d_out, n);
  int called = 0;
  cudaLaunchHostFunc(stream, add_one, &called);
  cudaEventRecord(ended, stream);
  cudaStreamSynchronize(stream);
  float milliseconds = -1;
  cudaEventElapsedTime(&milliseconds, begun, ended);
  cudaMemcpy(out.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost);
  int seen = -1;
  cudaMemcpyFromSymbol(&seen, total, sizeof seen);

  int* untouched;
  cudaMalloc(&untouched, n);
  scale<<<1, 256>>>(d_in, d_out, 256);
  cudaFree(untouched);  // and what comes next begins behind it

  float* shared;
  cudaMallocManaged(&shared, n * sizeof(float));
  for (int i = 0; i < n; ++i) shared[i] = 1;
  scale<<<4, 256>>>(shared, shared, n);
  cudaDeviceSynchronize();

  int* rows;
  size_t pitch;
  cudaMallocPitch(&rows, &pitch, 10 * sizeof(int), 3);
  fill<<<3, 10>>>(rows, pitch);
  int table[3][10];
  cudaMemcpy2D(table, sizeof table[0], rows, pitch, sizeof table[0], 3, cudaMemcpyDeviceToHost);

  for (int k = 0; k < 2; ++k) keep_largest<<<64, 64>>>(4096);
  int last = 0;
  cudaMemcpyFromSymbol(&last, largest, sizeof last);

  cudaDeviceProp device;
  cudaGetDeviceProperties(&device, 0);
  const bool right = out[n - 2] == 4 && seen == 666 && shared[n - 1] == 2 && table[2][9] == 2 &&
                     called == 1 && last == 4095 && milliseconds >= 0 && device.warpSize == 32;
  printf("%s %s\n", right ? "right" : "wrong", argv[1]);
  for (void* each : {(void*)d_in, (void*)d_out, (void*)shared, (void*)rows}) cudaFree(each);
  return cudaGetLastError() == cudaSuccess && right ? 7 : 8;
}
