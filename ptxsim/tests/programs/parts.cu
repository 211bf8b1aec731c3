// Half of a program of two files, compiled each for itself or linked with -rdc=true, which defines
// __CUDACC_RDC__. The other half is other_part.cu.
#include <cstdio>

#ifdef __CUDACC_RDC__
extern __device__ int shared_value;
__device__ int twice(int);
#else
__device__ int shared_value = 100;
static __device__ int twice(int x) { return 2 * x; }
#endif
static __device__ int own = 5;

static __global__ void same(int* out) {
  out[threadIdx.x] = twice(threadIdx.x) + shared_value + own;
  if (threadIdx.x == 31) printf("here %d\n", own);
}

// Made before the other file's kernels are known.
static char* const early = [] {
  char* made;
  cudaMalloc(&made, 64);
  cudaMemset(made, 1, 32);
  return made;
}();

void other(int* out, char* bytes);

int main() {
  int *out, host[32], value = 0;
  char bytes[32];
  cudaMalloc(&out, sizeof host);
  same<<<1, 32>>>(out);
  other(out, early);
  same<<<1, 32>>>(out);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  cudaMemcpy(bytes, early, sizeof bytes, cudaMemcpyDeviceToHost);
  cudaMemcpyFromSymbol(&value, own, sizeof value);
  printf("%d %d %d %s\n", host[1], value, bytes[3], cudaGetErrorName(cudaGetLastError()));
  cudaFree(out), cudaFree(early);
}
