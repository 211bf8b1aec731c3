extern "C" __global__ void appends(int* list, int* count) {
  if (threadIdx.x % 32 == 0) list[atomicAdd(count, 1)] = 4 * blockIdx.x + threadIdx.x / 32;
}
extern "C" __global__ void sums(float* sum, int* count) {
  atomicAdd(sum, 1 / (1.0f + blockIdx.x * blockDim.x + threadIdx.x));
}
extern "C" __global__ void first(int* a, int* count) {
  if (threadIdx.x == 0 && atomicAdd(count, 1) == 0 && blockIdx.x % 7) a[64] = 1;
}
