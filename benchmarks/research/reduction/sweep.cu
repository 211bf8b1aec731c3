// Variants of a one-pass reduction beside CUB's DeviceReduce::Sum: which way of loading is fastest.
//
//   nvcc -std=c++17 -O3 -arch=sm_90 -o sweep benchmarks/research/reduction/sweep.cu && ./sweep
//
// Every variant adds up the same numbers, cold: the L2 is overwritten before each launch. Variants
// and CUB take turns. A line gives the median time, GB/s, and the median ratio to CUB's time.
#include <cub/device/device_reduce.cuh>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

__global__ void spin(unsigned long long nanoseconds) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - start < nanoseconds);
}

// Whole numbers, so that every order of summation gives the same sum.
__global__ void fill(float* to, size_t count) {
  const size_t step = size_t(gridDim.x) * blockDim.x;
  for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    unsigned x = unsigned(i) * 2654435761u;
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    x ^= x >> 16;
    to[i] = (x & 1 ? 1.0f : -1.0f) * float(64 + (x >> 25));
  }
}

enum Order { TILES, STRIDED, SHARES };
enum Hint { PLAIN, STREAMING, NOT_IN_L1 };

constexpr int MOST_BLOCKS = 1 << 20;
__device__ float sums[MOST_BLOCKS];
__device__ unsigned finished;

template <int HINT>
__device__ float4 load(const float4* at) {
  if (HINT == STREAMING) return __ldcs(at);
  if (HINT == NOT_IN_L1) {
    float4 v;
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(at));
    return v;
  }
  return *at;
}

__device__ float warp_sum(float sum) {
#pragma unroll
  for (int s = 16; s > 0; s /= 2) sum += __shfl_down_sync(0xffffffff, sum, s);
  return sum;
}

template <int THREADS>
__device__ float block_sum(float sum) {
  __shared__ float part[THREADS / 32];
  const int tid = threadIdx.x;
  sum = warp_sum(sum);
  if (tid % 32 == 0) part[tid / 32] = sum;
  __syncthreads();
  if (tid < 32) sum = warp_sum(tid < THREADS / 32 ? part[tid] : 0.0f);
  return sum;
}

template <int THREADS>
__device__ void finish(float sum, float* out) {
  __shared__ bool last;
  sum = block_sum<THREADS>(sum);
  if (gridDim.x == 1) {
    if (threadIdx.x == 0) *out = sum;
    return;
  }
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  sum = 0.0f;
  for (unsigned b = threadIdx.x; b < gridDim.x; b += THREADS) sum += __ldcg(sums + b);
  sum = block_sum<THREADS>(sum);
  if (threadIdx.x == 0) *out = sum;
}

__device__ float of(float4 v) { return (v.x + v.y) + (v.z + v.w); }

template <int THREADS, int UNROLL, int ORDER, int HINT>
__global__ void __launch_bounds__(THREADS) reduce(const float* in, float* out, int n) {
  const float4* wide = reinterpret_cast<const float4*>(in);
  const int quads = n / 4, tid = threadIdx.x;
  constexpr int TILE = THREADS * UNROLL;
  float part[UNROLL] = {};
  int at, step, between, end = quads;
  if (ORDER == TILES) {
    at = blockIdx.x * TILE + tid, step = gridDim.x * TILE, between = THREADS;
  } else if (ORDER == STRIDED) {
    at = blockIdx.x * THREADS + tid, between = gridDim.x * THREADS, step = UNROLL * between;
  } else {
    const int share = ((quads + gridDim.x - 1) / gridDim.x + 31) / 32 * 32;
    const int first = min(quads, int(blockIdx.x) * share);
    at = first + tid, step = TILE, between = THREADS, end = min(quads, first + share);
  }
  for (; at + (UNROLL - 1) * between < end; at += step) {
    float4 v[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) v[u] = load<HINT>(wide + at + u * between);
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) part[u] += of(v[u]);
  }
#pragma unroll
  for (int u = 0; u < UNROLL; ++u)
    if (at + u * between < end) part[u] += of(load<HINT>(wide + at + u * between));
  float sum = 0.0f;
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) sum += part[u];
  if (blockIdx.x == 0 && 4 * quads + tid < n) sum += in[4 * quads + tid];
  finish<THREADS>(sum, out);
}

// Bulk copies into a ring of stages in shared memory; n must be a multiple of a stage here.
template <int THREADS, int STAGES, int UNROLL>
__global__ void __launch_bounds__(THREADS) bulk(const float* in, float* out, int n) {
  extern __shared__ __align__(128) float4 ring[];
  __shared__ __align__(8) uint64_t full[STAGES];
  constexpr int QUADS = THREADS * UNROLL;
  const int tid = threadIdx.x, tiles = n / 4 / QUADS;
  auto address = [](const void* p) { return unsigned(__cvta_generic_to_shared(p)); };
  auto issue = [&](int tile, int stage) {
    const float* from = in + size_t(tile) * QUADS * 4;
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(address(full + stage)),
                 "r"(QUADS * 16)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(address(ring + stage * QUADS)),
        "l"(from), "r"(QUADS * 16), "r"(address(full + stage))
        : "memory");
  };
  if (tid == 0) {
    for (int s = 0; s < STAGES; ++s)
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(address(full + s)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    for (int s = 0; s < STAGES; ++s)
      if (int(blockIdx.x + s * gridDim.x) < tiles) issue(blockIdx.x + s * gridDim.x, s);
  }
  __syncthreads();
  float part[UNROLL] = {};
  int stage = 0, phase = 0;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    unsigned done = 0;
    while (!done)
      asm volatile(
          "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
          : "=r"(done)
          : "r"(address(full + stage)), "r"(phase)
          : "memory");
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) part[u] += of(ring[stage * QUADS + u * THREADS + tid]);
    __syncthreads();
    const int next = tile + STAGES * gridDim.x;
    if (tid == 0 && next < tiles) issue(next, stage);
    if (++stage == STAGES) stage = 0, phase ^= 1;
  }
  float sum = 0.0f;
  for (int u = 0; u < UNROLL; ++u) sum += part[u];
  finish<THREADS>(sum, out);
}

struct Variant {
  std::string name;
  std::function<void(const float*, float*, int)> launch;
};

int multiprocessors, cub_bytes;
void* cub_temporary;

template <int THREADS, int UNROLL, int ORDER, int HINT>
void add(std::vector<Variant>& to, std::initializer_list<int> blocks_each) {
  static const char* orders[] = {"tiles", "strided", "shares"};
  static const char* hints[] = {"plain", "streaming", "not in L1"};
  for (int each : blocks_each) {
    const std::string name = std::to_string(THREADS) + " threads, " + std::to_string(UNROLL) +
                             " quads, " + orders[ORDER] + ", " + hints[HINT] + ", " +
                             (each ? std::to_string(each) + " blocks/SM" : "a block per tile");
    to.push_back({name, [each](const float* in, float* out, int n) {
                    const long tiles = (n / 4 + THREADS * UNROLL - 1) / (THREADS * UNROLL);
                    const long most = each ? long(each) * multiprocessors : MOST_BLOCKS;
                    const int blocks = int(std::max(1L, std::min(tiles, most)));
                    reduce<THREADS, UNROLL, ORDER, HINT><<<blocks, THREADS>>>(in, out, n);
                  }});
  }
}

template <int THREADS, int STAGES, int UNROLL>
void add_bulk(std::vector<Variant>& to, std::initializer_list<int> blocks_each) {
  constexpr int BYTES = STAGES * THREADS * UNROLL * 16;
  check(cudaFuncSetAttribute(bulk<THREADS, STAGES, UNROLL>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES),
        "shared memory");
  for (int each : blocks_each) {
    const std::string name = std::to_string(THREADS) + " threads, bulk copies of " +
                             std::to_string(THREADS * UNROLL / 64) + " KiB, " +
                             std::to_string(STAGES) + " stages, " + std::to_string(each) +
                             " blocks/SM";
    to.push_back({name, [each](const float* in, float* out, int n) {
                    const int tiles = n / 4 / (THREADS * UNROLL);
                    const int blocks = std::min(tiles, each * multiprocessors);
                    bulk<THREADS, STAGES, UNROLL><<<blocks, THREADS, BYTES>>>(in, out, n);
                  }});
  }
}

float median(std::vector<float> of) {
  std::nth_element(of.begin(), of.begin() + of.size() / 2, of.end());
  return of[of.size() / 2];
}

int main(int argc, char** argv) {
  const int most = argc > 1 ? std::atoi(argv[1]) : 1 << 28;
  const int repetitions = argc > 2 ? std::atoi(argv[2]) : 21;
  cudaDeviceProp card;
  check(cudaGetDeviceProperties(&card, 0), "no GPU");
  multiprocessors = card.multiProcessorCount;
  const size_t flush_bytes = 2 * size_t(card.l2CacheSize) + (1 << 20);
  float *in, *out;
  void* flush;
  check(cudaMalloc(&in, size_t(most) * 4), "cudaMalloc");
  check(cudaMalloc(&out, 4), "cudaMalloc");
  check(cudaMalloc(&flush, flush_bytes), "cudaMalloc");
  fill<<<1024, 256>>>(in, most);
  size_t bytes = 0;
  check(cub::DeviceReduce::Sum(nullptr, bytes, in, out, most), "CUB");
  check(cudaMalloc(&cub_temporary, bytes), "cudaMalloc");

  std::vector<Variant> all;
  all.push_back({"CUB", [bytes](const float* in, float* out, int n) {
                   size_t room = bytes;
                   check(cub::DeviceReduce::Sum(cub_temporary, room, in, out, n), "CUB");
                 }});
  add<256, 2, TILES, PLAIN>(all, {8, 16, 0});
  add<256, 4, TILES, PLAIN>(all, {4, 8, 16, 32, 0});
  add<256, 8, TILES, PLAIN>(all, {2, 4, 8, 16, 0});
  add<512, 2, TILES, PLAIN>(all, {4, 8});
  add<512, 4, TILES, PLAIN>(all, {2, 4, 8, 16, 0});
  add<512, 8, TILES, PLAIN>(all, {1, 2, 4, 8});
  add<1024, 2, TILES, PLAIN>(all, {1, 2, 4});
  add<1024, 4, TILES, PLAIN>(all, {1, 2, 4});
  add<128, 8, TILES, PLAIN>(all, {4, 8, 16, 32});
  add<256, 4, STRIDED, PLAIN>(all, {4, 8, 16});
  add<512, 4, STRIDED, PLAIN>(all, {1, 2, 4});
  add<256, 8, STRIDED, PLAIN>(all, {2, 4, 8});
  add<256, 4, SHARES, PLAIN>(all, {8, 16});
  add<512, 4, SHARES, PLAIN>(all, {4, 8});
  add<256, 4, TILES, STREAMING>(all, {8, 16, 0});
  add<512, 4, TILES, STREAMING>(all, {2, 4, 8});
  add<256, 4, TILES, NOT_IN_L1>(all, {8, 16, 0});
  add<256, 8, TILES, NOT_IN_L1>(all, {2, 4, 8});
  add<512, 4, TILES, NOT_IN_L1>(all, {2, 4, 8});
  add<512, 8, TILES, NOT_IN_L1>(all, {1, 2, 4});
  add<1024, 4, TILES, NOT_IN_L1>(all, {1, 2});
  add_bulk<128, 4, 4>(all, {2, 4});
  add_bulk<256, 4, 2>(all, {2, 4});
  add_bulk<256, 4, 4>(all, {2, 3});
  add_bulk<256, 8, 2>(all, {2, 3});
  add_bulk<512, 4, 2>(all, {1, 2, 3});
  add_bulk<512, 4, 4>(all, {1});
  add_bulk<512, 6, 4>(all, {1});

  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  std::printf("%s, %d multiprocessors, L2 %d MiB\n", card.name, multiprocessors,
              card.l2CacheSize >> 20);
  for (int n = 1 << 16; n <= most; n *= 4) {
    std::vector<std::vector<float>> times(all.size());
    std::vector<float> got(all.size());
    for (int repetition = 0; repetition < repetitions; ++repetition) {
      for (size_t each = 0; each < all.size(); ++each) {
        const size_t v = (each + repetition) % all.size();
        check(cudaMemsetAsync(flush, repetition, flush_bytes), "flush");
        check(cudaMemsetAsync(out, 0xff, 4), "poison");
        spin<<<1, 1>>>(60000);
        cudaEventRecord(begin);
        all[v].launch(in, out, n);
        cudaEventRecord(end);
        check(cudaEventSynchronize(end), all[v].name.c_str());
        float milliseconds = 0;
        check(cudaEventElapsedTime(&milliseconds, begin, end), "time");
        times[v].push_back(milliseconds);
        check(cudaMemcpy(&got[v], out, 4, cudaMemcpyDeviceToHost), "result");
        if (got[v] != got[0] && repetition) times[v].back() = 1e9f;
      }
    }
    std::vector<size_t> order(all.size());
    for (size_t v = 0; v < all.size(); ++v) order[v] = v;
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return median(times[a]) < median(times[b]); });
    for (size_t v : order) {
      std::vector<float> ratios;
      for (size_t r = 0; r < times[v].size(); ++r) ratios.push_back(times[0][r] / times[v][r]);
      const float ms = median(times[v]);
      std::printf("%10d %10.3f us %8.1f GB/s %7.3f  %s%s\n", n, 1e3f * ms, 4e-6 * n / ms,
                  median(ratios), all[v].name.c_str(), got[v] == got[0] ? "" : "  WRONG");
    }
  }
  return 0;
}
