// Each way of writing to an element.
#include <cstdlib>

__device__ int counter;

__global__ void add(const float* a, const float* b, float* c) {
  c[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}

__global__ void turn(float* c) {
  __shared__ float tile[32];
  tile[threadIdx.x] = c[threadIdx.x];
  __syncthreads();
  c[threadIdx.x] = tile[31 - threadIdx.x] - 1;
}

__global__ void four(float4* c, float x) {
  c[threadIdx.x] = make_float4(0, x * threadIdx.x, 0, 0);
}

__global__ void race(int* out) { *out = 10 * threadIdx.x + 7; }

__global__ void count(int* out) {
  atomicAdd(out, 3);
  atomicMax(&counter, 10 + threadIdx.x);
}

__global__ void sum(const double* x, double* total, int n) {
  double s = 0;
  for (int i = 0; i < n; ++i) s += x[i] * x[i];
  total[1] = s;
}

__global__ void bytes(unsigned char* b) { b[threadIdx.x] += 250; }

int main() {
  float host[32], *d_a, *d_b, *d_c;
  for (int i = 0; i < 32; ++i) host[i] = i;
  cudaMalloc(&d_a, sizeof host), cudaMalloc(&d_b, sizeof host);
  cudaMalloc(&d_c, sizeof host);
  cudaMemcpy(d_a, host, sizeof host, cudaMemcpyHostToDevice);
  cudaMemcpy(d_b, d_a, sizeof host, cudaMemcpyDeviceToDevice);
  add<<<1, 32>>>(d_a, d_b, d_c);
  turn<<<1, 32>>>(d_c);
  four<<<1, 8>>>(reinterpret_cast<float4*>(d_c), 3);
  cudaMemset(d_c, 0, 24);
  cudaMemset(d_c, 0, 20);

  int *d_n, start = 9;
  cudaMalloc(&d_n, 8);
  race<<<1, 2>>>(d_n);
  cudaMemset(d_n, 0, 8);
  cudaMemcpyToSymbol(counter, &start, sizeof start);
  count<<<dim3(1, 1, 2), dim3(1, 2)>>>(d_n);

  double *x, *total;
  cudaMallocManaged(&x, 32), cudaMallocManaged(&total, 16);
  for (int i = 0; i < 4; ++i) x[i] = i + 0.5;
  total[1] = -1;
  sum<<<1, 1>>>(x, total, 4);

  unsigned char* d_again;
  cudaMalloc(&d_again, 64);
  cudaMemset(d_again, 7, 32);
  bytes<<<1, 32>>>(d_again);
  cudaFree(d_again);
  cudaMalloc(&d_again, 32);
  cudaMemset(d_again, 1, 32);
  for (int i = 0; i < 2; ++i) bytes<<<1, 32>>>(d_again);
  abort();
}
