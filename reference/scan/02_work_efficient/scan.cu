// Rung 2: no more additions than needed.
//
// Changed:  512 threads scan 1024 elements by a tree: on the way up pairs of sums are added, which
//           leaves the sum of each subtree at its right end; on the way down each node hands the
//           sum of all before it to its left child, and that plus the left child's to its right
//           one.
// Why:      2 · 1023 additions instead of 10 · 1024. Neighbours in the tree lie a power of two
//           apart, in one bank of shared memory; an unused word behind every 32 spreads them.
// Bound:    barriers: 20 steps, in most of which few threads have work. DRAM as rung 1.
// Command:  grade --lab scan reference/scan/02_work_efficient
#include "scan.cuh"

constexpr int BLOCK = 1024, THREADS = BLOCK / 2;

__device__ int place(int i) { return i + i / 32; }

__global__ void scan_blocks(const int* in, int* out, int* sums, int n) {
  __shared__ int part[BLOCK + BLOCK / 32];
  const int tid = threadIdx.x, first = blockIdx.x * BLOCK;
  const int low = first + tid, high = low + THREADS;
  const int a = low < n ? in[low] : 0, b = high < n ? in[high] : 0;
  part[place(tid)] = a;
  part[place(tid + THREADS)] = b;
  for (int s = 1; s < BLOCK; s *= 2) {  // up: subtrees of s elements, in pairs
    __syncthreads();
    const int right = (2 * tid + 2) * s - 1;
    if (right < BLOCK) part[place(right)] += part[place(right - s)];
  }
  if (tid == 0) {
    sums[blockIdx.x] = part[place(BLOCK - 1)];
    part[place(BLOCK - 1)] = 0;
  }
  for (int s = THREADS; s > 0; s /= 2) {  // down
    __syncthreads();
    const int right = (2 * tid + 2) * s - 1;
    if (right >= BLOCK) continue;
    const int left = part[place(right - s)];
    part[place(right - s)] = part[place(right)];
    part[place(right)] += left;
  }
  __syncthreads();
  if (low < n) out[low] = part[place(tid)] + a;  // the tree's sums are exclusive
  if (high < n) out[high] = part[place(tid + THREADS)] + b;
}

__global__ void add_sums(const int* sums, int* out, int n) {
  const int i = (blockIdx.x + 1) * BLOCK + threadIdx.x;
  if (i < n) out[i] += sums[blockIdx.x];
  if (i + THREADS < n) out[i + THREADS] += sums[blockIdx.x];
}

static void scan(const int* in, int* out, int* sums, int n) {
  const int blocks = (n + BLOCK - 1) / BLOCK;
  scan_blocks<<<blocks, THREADS>>>(in, out, sums, n);
  if (blocks == 1) return;
  scan(sums, sums, sums + blocks, blocks);
  add_sums<<<blocks - 1, THREADS>>>(sums, out, n);
}

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
