// Rung 4: sums first, and int4.
//
// Changed:  a tile of 4096 elements for each block, four int4 of each thread. The first kernel only
//           adds up each tile; the second, one block, scans these sums; the third scans the tiles
//           and knows what comes before them.
// Why:      three passes over DRAM instead of four. The four loads of a thread are on the way at
//           once, and a warp's int4 are 512 bytes in a row.
// Bound:    DRAM, three times per element; the second kernel keeps one multiprocessor busy.
// Command:  grade --lab scan reference/scan/04_int4
#include "scan.cuh"

constexpr int THREADS = 256, WARPS = THREADS / 32, QUADS = 4, ROW = 128;  // of a warp: 32 int4
constexpr int PART = QUADS * ROW, TILE = WARPS * PART;  // elements of a warp, a block

__device__ int warp_scan(int sum) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int s = 1; s < 32; s *= 2) {
    const int other = __shfl_up_sync(0xffffffff, sum, s);
    if (lane >= s) sum += other;
  }
  return sum;
}

// What comes before this warp in its block; every warp hands over its sum. total: of the block.
__device__ int before_warp(int sum, int& total) {
  __shared__ int part[WARPS];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  __syncthreads();  // the last call's are read
  if (lane == 0) part[warp] = sum;
  __syncthreads();
  const int sums = warp_scan(lane < WARPS ? part[lane] : 0);
  total = __shfl_sync(0xffffffff, sums, 31);
  return __shfl_sync(0xffffffff, sums, warp) - sum;
}

// This thread's int4 of the warp's part that begins at `first`: one of each row. 0 behind the end.
__device__ void load(int4 (&v)[QUADS], const int* in, int n, int first) {
  const int i = first + threadIdx.x % 32 * 4;
#pragma unroll
  for (int q = 0; q < QUADS; ++q) {
    const int at = i + q * ROW;
    if (first + PART <= n) {
      v[q] = *reinterpret_cast<const int4*>(in + at);
      continue;
    }
    v[q].x = at < n ? in[at] : 0;
    v[q].y = at + 1 < n ? in[at + 1] : 0;
    v[q].z = at + 2 < n ? in[at + 2] : 0;
    v[q].w = at + 3 < n ? in[at + 3] : 0;
  }
}

__device__ void store(const int4 (&v)[QUADS], int before, int* out, int n, int first) {
  const int i = first + threadIdx.x % 32 * 4;
#pragma unroll
  for (int q = 0; q < QUADS; ++q) {
    const int at = i + q * ROW;
    const int4 u = {v[q].x + before, v[q].y + before, v[q].z + before, v[q].w + before};
    if (first + PART <= n) {
      *reinterpret_cast<int4*>(out + at) = u;
      continue;
    }
    if (at < n) out[at] = u.x;
    if (at + 1 < n) out[at + 1] = u.y;
    if (at + 2 < n) out[at + 2] = u.z;
    if (at + 3 < n) out[at + 3] = u.w;
  }
}

// Scans a warp's part row by row and returns its sum.
__device__ int scan_part(int4 (&v)[QUADS]) {
  int sum = 0;
#pragma unroll
  for (int q = 0; q < QUADS; ++q) {
    v[q].y += v[q].x;
    v[q].z += v[q].y;
    v[q].w += v[q].z;
    const int row = warp_scan(v[q].w), before = sum + row - v[q].w;
    v[q].x += before;
    v[q].y += before;
    v[q].z += before;
    v[q].w += before;
    sum += __shfl_sync(0xffffffff, row, 31);
  }
  return sum;
}

__global__ void sum_tiles(const int* in, int* sums, int n) {
  int4 v[QUADS];
  load(v, in, n, blockIdx.x * TILE + threadIdx.x / 32 * PART);
  int sum = 0, total;
#pragma unroll
  for (int q = 0; q < QUADS; ++q) sum += v[q].x + v[q].y + v[q].z + v[q].w;
  before_warp(__shfl_sync(0xffffffff, warp_scan(sum), 31), total);
  if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

// Scans tile after tile, from one that this block has to the next; before: what comes before the
// first.
__device__ void scan_tiles(const int* in, int* out, int n, int tile, int before) {
  for (; tile * TILE < n; tile += gridDim.x) {
    const int first = tile * TILE + threadIdx.x / 32 * PART;
    int4 v[QUADS];
    load(v, in, n, first);
    int total;
    const int sum = scan_part(v);
    store(v, before + before_warp(sum, total), out, n, first);
    before += total;
  }
}

__global__ void scan_sums(int* sums, int tiles) { scan_tiles(sums, sums, tiles, 0, 0); }

__global__ void scan(const int* in, int* out, const int* sums, int n) {
  scan_tiles(in, out, n, blockIdx.x, blockIdx.x > 0 ? sums[blockIdx.x - 1] : 0);
}

static int* workspace(int tiles) {
  static int* kept;
  static int room;
  if (room < tiles) {
    cudaFree(kept);
    cudaMalloc(&kept, tiles * sizeof(int));
    room = tiles;
  }
  return kept;
}

template <>
void run_custom<int>(thrust::device_vector<int>& in, thrust::device_vector<int>& out, int n) {
  const int tiles = (n + TILE - 1) / TILE;
  int* sums = workspace(tiles);
  sum_tiles<<<tiles, THREADS>>>(in.data().get(), sums, n);
  scan_sums<<<1, THREADS>>>(sums, tiles);
  scan<<<tiles, THREADS>>>(in.data().get(), out.data().get(), sums, n);
}
