// Rung 6: tiles on the way, and sums two turns ahead.
//
// Changed:  blocks that stay, three for each multiprocessor, and take one tile after the other.
//           Each has three in shared memory: two that are scanned and whose sums it has published,
//           one that cp.async brings. A turn takes that one, then asks what comes before the
//           oldest, and writes it. Nobody publishes what comes before a tile: between two tiles of
//           its own a block adds up the sums of all others, a word for each thread.
// Why:      loads are on the way whatever a block waits for, and what it asks for was published two
//           turns ago, so it hardly waits; no tile waits for a chain of others. (Published in the
//           same turn, sums make all blocks wait for the slowest, and rung 5 is faster.) A thread's
//           12 elements lie in a row: 3 int4, an odd number, so that eight threads read from all
//           banks. Warps copy and scan parts of their own: few barriers. No word is cleared: its
//           upper half is the number of the call, and one atomic operation gives a block that and
//           its tile.
// Bound:    DRAM.
// Command:  grade --lab scan reference/scan/06_ahead
#include <cuda_pipeline.h>

#include "scan.cuh"

constexpr int THREADS = 512, WARPS = THREADS / 32, QUADS = 3, STAGES = 3;
constexpr int BLOCKS = 3;                                  // for each multiprocessor
constexpr int PART = 32 * QUADS * 4, TILE = WARPS * PART;  // elements of a warp, of a block
constexpr int SHARED = STAGES * TILE * sizeof(int);
constexpr unsigned ALL = 0xffffffff;

using Word = unsigned long long;

// In lower halves: the sum of each tile, and how many tiles are taken. In upper ones: the call that
// published the sum, and how many calls have ended.
__device__ Word words[(1 << 28) / TILE + 1], state;

// Relaxed accesses: neither half of a word is seen without the other, and nothing else is ordered.
__device__ Word look(const Word* at) {
  Word word;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(at) : "memory");
  return word;
}

__device__ void publish(Word* at, unsigned call, int sum) {
  const Word word = Word(call) << 32 | unsigned(sum);
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(word) : "memory");
}

__device__ int warp_scan(int sum) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int s = 1; s < 32; s *= 2) {
    const int other = __shfl_up_sync(ALL, sum, s);
    if (lane >= s) sum += other;
  }
  return sum;
}

// Starts to copy a warp's part of a tile. What lies behind the end becomes 0.
__device__ void fetch(int4* part, const int* in, int n, int first) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int q = 0; q < QUADS; ++q) {
    int4* const to = part + q * 32 + lane;
    const int at = first + (q * 32 + lane) * 4;
    if (at + 3 < n) __pipeline_memcpy_async(to, in + at, sizeof(int4));
    else *to = {at < n ? in[at] : 0, at + 1 < n ? in[at + 1] : 0, at + 2 < n ? in[at + 2] : 0, 0};
  }
}

// Scans a warp's part in place; each lane has QUADS int4 in a row. Returns the warp's sum.
__device__ int scan_part(int4* part) {
  int4 v[QUADS];
  int sum = 0;
  part += threadIdx.x % 32 * QUADS;
#pragma unroll
  for (int q = 0; q < QUADS; ++q) {
    v[q] = part[q];
    v[q].x += sum;
    v[q].y += v[q].x;
    v[q].z += v[q].y;
    v[q].w += v[q].z;
    sum = v[q].w;
  }
  const int sums = warp_scan(sum), before = sums - sum;
#pragma unroll
  for (int q = 0; q < QUADS; ++q)
    part[q] = {v[q].x + before, v[q].y + before, v[q].z + before, v[q].w + before};
  return __shfl_sync(ALL, sums, 31);
}

__device__ void store(const int4* part, int before, int* out, int n, int first) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int q = 0; q < QUADS; ++q) {
    const int4 v = part[q * 32 + lane];
    const int4 u = {v.x + before, v.y + before, v.z + before, v.w + before};
    const int at = first + (q * 32 + lane) * 4;
    if (at + 3 < n) {
      *reinterpret_cast<int4*>(out + at) = u;
      continue;
    }
    if (at < n) out[at] = u.x;
    if (at + 1 < n) out[at + 1] = u.y;
    if (at + 2 < n) out[at + 2] = u.z;
  }
}

// A thread's share of the sums of the tiles from `from` to before `to`, as this call publishes
// them.
__device__ int ask(int from, int to, unsigned call) {
  int sum = 0;
  for (int at = from + threadIdx.x; at < to; at += THREADS) {
    Word word;
    do word = look(words + at);
    while (word >> 32 != call);
    sum += int(word);
  }
  return sum;
}

__global__ void __launch_bounds__(THREADS, BLOCKS) scan(const int* in, int* out, int n, int tiles) {
  extern __shared__ int4 shared[];
  __shared__ int sums[2][WARPS], asked[2][WARPS];
  __shared__ Word queue[STAGES];  // what `state` was when the tile of each stage was taken
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
  const int last = tiles + gridDim.x - 1;  // each block takes one tile that does not exist
  const auto part = [&](int stage) { return shared + (stage * WARPS + warp) * (PART / 4); };
  const auto first = [&](int tile) { return tile * TILE + warp * PART; };
  const auto tile_of = [&](int stage) { return int(queue[stage]); };
  const auto bring = [&](int stage) {
    if (tile_of(stage) < tiles) fetch(part(stage), in, n, first(tile_of(stage)));
    __pipeline_commit();
  };
  // Thread 0 takes tiles for all, until there are none. Whoever takes the last one ends the call.
  Word newest = 0;
  const auto take = [&] {
    const bool takes = tid == 0 && int(newest) < tiles;
    if (takes) newest = atomicAdd(&state, 1);
    return takes;
  };
  const auto enqueue = [&](int stage, bool taken) {
    if (tid == 0) queue[stage] = newest;
    if (taken && int(newest) == last) atomicAdd(&state, (Word(1) << 32) - last - 1);
  };
  for (int s = 0; s < STAGES; ++s) {
    enqueue(s, take());
    __syncthreads();
    bring(s);
  }
  const unsigned call = (queue[0] >> 32) + 1;
  int tile = tile_of(0);
  if (tile >= tiles) return;

  int parity = 0;
  // Scans a tile and publishes its sum; returns what comes before this warp in the tile.
  const auto prepare = [&](int stage) {
    const int fresh = tile_of(stage);
    if (fresh >= tiles) return 0;
    __syncwarp();  // other lanes' copies
    const int sum = scan_part(part(stage));
    if (lane == 0) sums[parity][warp] = sum;
    __syncthreads();
    const int all = warp_scan(lane < WARPS ? sums[parity][lane] : 0);
    if (tid == 31) publish(words + fresh, call, all);
    parity ^= 1;
    return __shfl_sync(ALL, all, warp) - sum;
  };
  __pipeline_wait_prior(2);
  int in_tile = prepare(0);
  __pipeline_wait_prior(1);
  int in_next = prepare(1);
  for (int stage = 0, from = 0, before = 0, turn = 0;; turn ^= 1) {
    const int next = tile_of((stage + 1) % STAGES);
    const bool taken = take();  // known when it is needed
    __pipeline_wait_prior(0);
    const int in_newest = prepare((stage + 2) % STAGES);
    const int sum = __reduce_add_sync(ALL, ask(from, tile, call));
    if (lane == 0) asked[turn][warp] = sum;
    enqueue(stage, taken);
    __syncthreads();
    before += __reduce_add_sync(ALL, lane < WARPS ? asked[turn][lane] : 0);
    store(part(stage), before + in_tile, out, n, first(tile));
    if (next >= tiles) return;
    bring(stage);
    from = tile;
    tile = next;
    in_tile = in_next;
    in_next = in_newest;
    stage = (stage + 1) % STAGES;
  }
}

template <>
void run_custom<int>(thrust::device_vector<int>& in, thrust::device_vector<int>& out, int n) {
  const int tiles = (n + TILE - 1) / TILE;
  int processors;
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
  cudaFuncSetAttribute(scan, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED);
  scan<<<std::min(tiles, BLOCKS * processors), THREADS, SHARED>>>(in.data().get(), out.data().get(),
                                                                  n, tiles);
}
