// Kinds of memory, and figures of kernels. What stands behind // is what a mistake of that name
// does.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

__managed__ int total = 40;
__constant__ float table[10];

__global__ void add(int* values, int n) {
  if (threadIdx.x < n) values[threadIdx.x] += 2;
  if (threadIdx.x == 0) atomicAdd(&total, 2);
}
__global__ void small(float* out) { *out = table[3]; }
__global__ void __launch_bounds__(128) bounded(float* out) { *out = table[1]; }

// Has more values at a time than a block of 1024 threads has registers for.
__global__ void large(const float* in, float* out) {
  float held[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) held[i] = in[i * blockDim.x + threadIdx.x];
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 96; ++i) sum = held[i] * sum + held[95 - i];
  out[threadIdx.x] = sum;
}

#define TELL(call) printf("%s\n", cudaGetErrorName(call)), cudaGetLastError()

int main(int, char** argv) {
  const std::string mistake = argv[1];
  // Memory of the host's own, which begins in the middle of a page.
  std::vector<int> values(1000, 1);
  int *device, *pinned, *managed, *ordered, *plain;
  cudaHostRegister(values.data() + 5, 32 * sizeof(int), cudaHostRegisterMapped);
  cudaHostGetDevicePointer(&device, values.data() + 5, 0);
  add<<<1, 32>>>(device, 32);
  cudaDeviceSynchronize();
  const int seen = values[5] + values[36];
  cudaHostUnregister(values.data() + 5);
  printf("registered: %d %d %d %d\n", seen, values[5], values[4], values[37]);
  printf("managed: %d\n", total);

  cudaMallocHost(&pinned, 64), cudaMallocManaged(&managed, 64), cudaMalloc(&plain, 64);
  for (void* each : {(void*)pinned, (void*)managed, (void*)plain, (void*)values.data()}) {
    cudaPointerAttributes attributes;
    cudaPointerGetAttributes(&attributes, each);
    printf("%d ", attributes.type);
  }
  cudaMemPool_t pool;
  cudaDeviceGetDefaultMemPool(&pool, 0);
  uint64_t threshold = UINT64_MAX, kept = 0;
  cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold);
  cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept);
  cudaMallocFromPoolAsync((void**)&ordered, 64, pool, nullptr);
  cudaMemsetAsync(ordered, 0, 64);
  printf("%d\n", kept == threshold);
  cudaFreeAsync(ordered, nullptr);
  const cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
  if (mistake == "prefetch") TELL(cudaMemPrefetchAsync(plain, 64, here, 0));  // prefetch
  cudaMemPrefetchAsync(managed, 64, here, 0);
  if (mistake == "unregister") TELL(cudaHostUnregister(values.data()));  // unregister

  cudaFuncAttributes few, many, bound;
  cudaFuncGetAttributes(&few, small), cudaFuncGetAttributes(&bound, bounded);
  if (mistake == "registers") {
    float* room;
    cudaMalloc(&room, 97 * 4096);
    cudaMemset(room, 0, 97 * 4096);
    large<<<1, 256>>>(room, room + 96 * 1024);
    large<<<1, 1024>>>(room, room + 96 * 1024);  // registers
    TELL(cudaGetLastError());
    cudaFree(room);
  }
  cudaFuncGetAttributes(&many, large);
  int blocks = 0;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, large, 256, 0);
  printf("%d %d %d\n", few.numRegs < 20, many.numRegs > 80, many.maxThreadsPerBlock < 1024);
  printf("%zu %d %d\n", few.constSizeBytes, bound.maxThreadsPerBlock, blocks <= 3 && blocks > 0);
  cudaFreeHost(pinned), cudaFree(managed), cudaFree(plain);
  cudaMalloc(&plain, 64);
  cudaHostRegister(values.data(), 400, cudaHostRegisterDefault);
  if (mistake == "same page") TELL(cudaHostRegister(&values[100], 4, 0));  // same page
  cudaDeviceReset();
  printf("kept: %d\n", values[5]);
  if (mistake == "reset") TELL(cudaFree(plain));  // reset
}
