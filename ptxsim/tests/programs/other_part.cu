// The other half of parts.cu, with names that are there, too.
#include <cstdio>

#ifdef __CUDACC_RDC__
__device__ int shared_value = 100;
__device__ int twice(int x) { return 2 * x; }
#else
__device__ int shared_value = 1;
#endif
static __device__ int own = 6;

static __global__ void same(int* out, char* bytes) {
  bytes[threadIdx.x] += 2;
  if (threadIdx.x == 31) printf("there %d\n", own);
}

void other(int* out, char* bytes) {
  const int more = 1000;
  same<<<1, 32>>>(out, bytes);
  cudaMemcpyToSymbol(shared_value, &more, sizeof more);
}
