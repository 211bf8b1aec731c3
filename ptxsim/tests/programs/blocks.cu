// Launches that take long enough to fall into parts, whose blocks share memory or do not.
#include <cstdio>
#include <string>
#include <vector>
constexpr int N = 1 << 16;
__device__ unsigned busy(unsigned v, int times) {
  for (int k = 0; k < times; ++k) v = v * 1664525 + 1013904223 ^ k;
  return v;
}
__constant__ int factor = 3;
__device__ int total;
__global__ void apart(const unsigned* in, unsigned* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = busy(in[i] * factor, 2000);
}
__global__ void in_place(unsigned* values) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = busy(values[i], 2000);
}
__global__ void chained(unsigned* values) {  // each block reads what the one before it wrote
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = busy(i < blockDim.x ? i : values[i - blockDim.x], 2000);
}
__global__ void across(unsigned* values) {  // only blocks that are far from each other meet
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] += busy(values[(i + N / 2) % N], 2000);
}
__global__ void counted(const unsigned* in) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (busy(in[i], 2000) % 2) atomicAdd(&total, 1);
}
__global__ void overrun(const unsigned* in, unsigned* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i + (i == N - 1)] = busy(in[i], 2000);
}
__global__ void said(const unsigned* in, unsigned* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = busy(in[i], 2000);
  if (threadIdx.x == 0 && blockIdx.x % 64 == 63) printf("block %d\n", blockIdx.x);
}
int main(int, char** argv) {
  const std::string what = argv[1];
  std::vector<unsigned> host(N);
  for (int i = 0; i < N; ++i) host[i] = i;
  unsigned *a, *b;
  cudaMalloc(&a, 4 * N), cudaMalloc(&b, 4 * N);
  cudaMemcpy(a, host.data(), 4 * N, cudaMemcpyHostToDevice);
  cudaMemset(b, 0, 4 * N);
  if (what == "apart") apart<<<N / 256, 256>>>(a, b);
  if (what == "in place") in_place<<<N / 256, 256>>>(a);
  if (what == "chained") chained<<<N / 256, 256>>>(a);
  if (what == "across") across<<<N / 256, 256>>>(a);
  if (what == "counted") counted<<<N / 256, 256>>>(a);
  if (what == "overrun") overrun<<<N / 256, 256>>>(a, b);
  if (what == "said") said<<<N / 256, 256>>>(a, b);
  unsigned sum = 0;
  for (unsigned* each : {a, b}) {
    cudaMemcpy(host.data(), each, 4 * N, cudaMemcpyDeviceToHost);
    for (int i = 0; i < N; ++i) sum = sum * 31 + host[i];
  }
  int seen;
  cudaMemcpyFromSymbol(&seen, total, sizeof seen);
  printf("%u %d\n", sum, seen);
}
