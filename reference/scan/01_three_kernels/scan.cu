// Rung 1: three kernels.
//
// Changed:  the start of the ladder. Each block scans 1024 elements in shared memory: in step s
//           every thread adds what stands s places before it, for s = 1, 2, 4, … The blocks' sums
//           are scanned in the same way, level by level, and added to the elements of the blocks
//           behind.
// Why:      blocks cannot wait for each other between two lines of a kernel, only between kernels.
// Bound:    shared memory and barriers: 10 steps of 1024 additions where 1023 would do. DRAM moves
//           every element four times: the last kernel reads and writes all of them again.
// Command:  grade --lab scan reference/scan/01_three_kernels
#include "scan.cuh"

constexpr int BLOCK = 1024;

__global__ void scan_blocks(const int* in, int* out, int* sums, int n) {
  __shared__ int part[BLOCK];
  const int tid = threadIdx.x, i = blockIdx.x * BLOCK + tid;
  part[tid] = i < n ? in[i] : 0;
  __syncthreads();
  for (int s = 1; s < BLOCK; s *= 2) {
    const int other = tid >= s ? part[tid - s] : 0;
    __syncthreads();
    part[tid] += other;
    __syncthreads();
  }
  if (i < n) out[i] = part[tid];
  if (tid == BLOCK - 1) sums[blockIdx.x] = part[tid];
}

__global__ void add_sums(const int* sums, int* out, int n) {
  const int i = (blockIdx.x + 1) * BLOCK + threadIdx.x;  // the first block lacks nothing
  if (i < n) out[i] += sums[blockIdx.x];
}

static void scan(const int* in, int* out, int* sums, int n) {
  const int blocks = (n + BLOCK - 1) / BLOCK;
  scan_blocks<<<blocks, BLOCK>>>(in, out, sums, n);
  if (blocks == 1) return;
  scan(sums, sums, sums + blocks, blocks);
  add_sums<<<blocks - 1, BLOCK>>>(sums, out, n);
}

// The sums of all levels, from call to call.
static int* workspace(int n) {
  static int* kept;
  static int room;
  if (room < n) {
    cudaFree(kept);
    cudaMalloc(&kept, (n / (BLOCK / 2) + 4) * sizeof(int));
    room = n;
  }
  return kept;
}

template <>
void run_custom<int>(thrust::device_vector<int>& in, thrust::device_vector<int>& out, int n) {
  scan(in.data().get(), out.data().get(), workspace(n), n);
}
