// What card.py measures. A kernel of rates ends with a store that never happens, so
// that nothing before it is left out.
#include <algorithm>
#include <random>
#include <vector>

using u32 = unsigned int;
using u64 = unsigned long long;

extern "C" __global__ void nothing() {}

// 16 chains of FFMA for each thread, `rounds` of 16 steps.
extern "C" __global__ void multiply_add(float* out, int rounds, float x) {
  float sums[16];
  for (int i = 0; i < 16; ++i) sums[i] = threadIdx.x + i;
  for (int r = 0; r < rounds; ++r)
#pragma unroll
    for (int j = 0; j < 16; ++j)
#pragma unroll
      for (int i = 0; i < 16; ++i) sums[i] = sums[i] * x + 1.0f;
  float sum = 0.0f;
  for (int i = 0; i < 16; ++i) sum += sums[i];
  if (sum == 0.123f) *out = sum;
}

// Products of 16 by 8 by 16, on Turing by 8: eight sums for each warp, `rounds` of each.
#define SUMS "{%0, %1, %2, %3}"
extern "C" __global__ void tensor(float* out, int rounds) {
#if __CUDA_ARCH__ >= 750
  u32 a[4], b[2];
  for (int i = 0; i < 4; ++i) a[i] = 0x2E003800u + threadIdx.x * 0x00110007u + i;
  for (int i = 0; i < 2; ++i) b[i] = 0x31003400u + threadIdx.x * 0x00070011u + i;
  float sums[8][4] = {};
  for (int r = 0; r < rounds; ++r)
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float (&s)[4] = sums[i];
#if __CUDA_ARCH__ >= 800
      asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " SUMS
          ", {%4, %5, %6, %7}, {%8, %9}, " SUMS ";"
          : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
      asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 " SUMS ", {%4, %5}, {%6}, " SUMS ";"
          : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
          : "r"(a[0]), "r"(a[1]), "r"(b[0]));
#endif
    }
  float sum = 0.0f;
  for (int i = 0; i < 8; ++i) sum += sums[i][0] + sums[i][3];
  if (sum == 0.123f) *out = sum;
#endif
}

// All blocks read the same `count` quads `passes` times, past the L1, each from another place.
extern "C" __global__ void read(const uint4* from, u32* out, u32 count, int passes) {
  u32 sum = 0, start = blockIdx.x * 0x9E3779B9u % count;
  for (int p = 0; p < passes; ++p)
    for (u32 at = threadIdx.x; at < count; at += 4 * blockDim.x)
#pragma unroll
      for (u32 u = 0; u < 4; ++u) {
        u32 i = at + u * blockDim.x + start;
        i = i >= count ? i - count : i;
        if (at + u * blockDim.x < count) {
          const uint4 v = __ldcg(from + i);
          sum += v.x ^ v.y ^ v.z ^ v.w;
        }
      }
  if (sum == 0x12345678u) *out = sum;
}

// The grid reads `count` quads once.
extern "C" __global__ void stream(const uint4* from, u32* out, u32 count) {
  u32 sum = 0;
  const u32 step = gridDim.x * blockDim.x;
  for (u32 at = blockIdx.x * blockDim.x + threadIdx.x; at < count; at += 4 * step)
#pragma unroll
    for (u32 u = 0; u < 4; ++u)
      if (at + u * step < count) {
        const uint4 v = __ldcs(from + at + u * step);
        sum += v.x ^ v.y ^ v.z ^ v.w;
      }
  if (sum == 0x12345678u) *out = sum;
}

extern "C" __global__ void add_one_word(float* out, int rounds) {
  for (int r = 0; r < rounds; ++r) atomicAdd(out, 1.0f);
}

extern "C" __global__ void add_shared_word(float* out, int rounds) {
  __shared__ float total;
  if (threadIdx.x == 0) total = 0.0f;
  __syncthreads();
  for (int r = 0; r < rounds; ++r) atomicAdd(&total, 1.0f);
  __syncthreads();
  if (total == 0.5f) *out = total;
}

// --- latencies: chains of loads, each of which waits for the one before ----------------------

__device__ u32 now() {
  u32 t;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(t)::"memory");
  return t;
}

// 16 loads of each of `count` lines of 128 bytes, whose first word is its own address.
template <bool IN_L1>
__device__ void line_chain(u32* out, u64* lines, int count) {
  for (int i = 0; i < count; ++i) {
    u64 a = u64(lines + 16 * i);
    u32 start = 0, stop = 0;
    for (int pass = 0; pass < 3; ++pass) {
      start = now();
#pragma unroll
      for (int j = 0; j < 16; ++j) {
        if (IN_L1) asm volatile("ld.global.ca.u64 %0, [%0];" : "+l"(a));
        else asm volatile("ld.global.cg.u64 %0, [%0];" : "+l"(a));
      }
      if (a == 0) return;  // never: waits for the last
      stop = now();
    }
    out[i] = stop - start;
  }
}
extern "C" __global__ void l2_chain(u32* out, u64* lines, int count) {
  line_chain<false>(out, lines, count);
}

// One load of each of `count` places, `step` words apart, which no cache holds, and then one of
// the sector `beside` words further. The first word of each place holds the address of the next.
extern "C" __global__ void dram_chain(u32* out, u64* place, int count, int beside) {
  for (int i = 0; i < count; ++i) {
    u64 next = 0, other = 0;
    const u32 start = now();
    asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(next) : "l"(place));
    if (next == 0) return;  // never: waits for it
    const u32 between = now();
    asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(other) : "l"(place + beside));
    if (other == 1) return;
    const u32 stop = now();
    out[2 * i] = between - start, out[2 * i + 1] = stop - between;
    place = (u64*)next;
  }
}

// --- the host's side -------------------------------------------------------------------------

constexpr int TURNS = 5, ROUNDS = 4096, WAVES = 256;
constexpr size_t L2_BYTES = 8 << 20, DRAM_BYTES = 1 << 30;  // read; the former fit any L2
constexpr size_t LINES = 2048;                              // whose latencies are looked at
constexpr size_t PLACES = 256, APART = 1 << 16;             // read from DRAM, so many bytes apart
constexpr size_t FLUSH = 1 << 29;                           // bytes, more than any L2

// Seconds on the GPU, the least of a few turns after one that does not count.
template <class Work>
static double least(Work work) {
  cudaEvent_t start, stop;
  cudaEventCreate(&start), cudaEventCreate(&stop);
  double best = 1e9;
  for (int turn = 0; turn <= TURNS; ++turn) {
    float ms = 0.0f;
    cudaEventRecord(start);
    work();
    cudaEventRecord(stop);
    cudaEventSynchronize(stop);
    cudaEventElapsedTime(&ms, start, stop);
    if (turn) best = std::min(best, ms / 1e3);
  }
  cudaEventDestroy(start), cudaEventDestroy(stop);
  return best;
}

static double median(const u32* out, size_t count, size_t step, double scale) {
  std::vector<u32> found(2 * count);
  cudaMemcpy(found.data(), out, 4 * count * step, cudaMemcpyDeviceToHost);
  for (size_t i = 0; i < count; ++i) found[i] = found[i * step];
  std::nth_element(found.begin(), found.begin() + count / 2, found.begin() + count);
  return found[count / 2] * scale;
}

static double from_l2(u32* out) {
  std::vector<u64> words(16 * LINES);
  u64* lines;
  cudaMalloc(&lines, 8 * words.size());
  for (size_t i = 0; i < words.size(); ++i) words[i] = u64(lines + i);
  cudaMemcpy(lines, words.data(), 8 * words.size(), cudaMemcpyHostToDevice);
  l2_chain<<<1, 1>>>(out, lines, LINES);
  const double cycles = median(out, LINES, 1, 1.0 / 16);
  cudaFree(lines);
  return cycles;
}

static double from_dram(u32* out) {
  std::vector<u64> order(PLACES), words(PLACES * APART / 8);
  u64 *places, *flush;
  cudaMalloc(&places, PLACES * APART), cudaMalloc(&flush, FLUSH);
  for (size_t i = 0; i < PLACES; ++i) order[i] = i * APART / 8;
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  for (size_t i = 0; i < PLACES; ++i) words[order[i]] = u64(places + order[(i + 1) % PLACES]);
  cudaMemcpy(places, words.data(), PLACES * APART, cudaMemcpyHostToDevice);
  cudaMemset(flush, 1, FLUSH);
  dram_chain<<<1, 1>>>(out, places + order[0], PLACES, 8);
  const double cycles = median(out, PLACES, 2, 1.0);
  cudaFree(places), cudaFree(flush);
  return cycles;
}

// Multiply-adds, products of tensor cores and bytes of the DRAM and the L2 in a second; cycles of a
// load from the L2 and from the DRAM; seconds of a wave of blocks, of which `resident` of 256
// threads fit, and of an addition to a word of global and of shared memory. Returns CUDA's error.
extern "C" int measure_card(int sms, int resident, int depth, double* found) {
  u32* out;
  uint4* data;
  cudaMalloc(&out, 8 * LINES), cudaMalloc(&data, DRAM_BYTES);
  cudaMemset(data, 0, DRAM_BYTES);
  float* const sum = (float*)out;
  const double threads = 4.0 * sms * 256;
  *found++ =
      threads * 256 * ROUNDS / least([&] { multiply_add<<<4 * sms, 256>>>(sum, ROUNDS, 0.999f); });
  *found++ = threads / 32 * 8 * 16 * 8 * depth * ROUNDS /
             least([&] { tensor<<<4 * sms, 256>>>(sum, ROUNDS); });
  *found++ = DRAM_BYTES / least([&] { stream<<<8 * sms, 256>>>(data, out, DRAM_BYTES / 16); });
  const auto passes = [&](int count) {
    return least([&] { read<<<2 * sms, 1024>>>(data, out, L2_BYTES / 16, count); });
  };
  *found++ = 8.0 * 2 * sms * L2_BYTES / (passes(10) - passes(2));
  *found++ = from_l2(out);
  *found++ = from_dram(out);
  const auto waves = [&](int count) {
    return least([&] { nothing<<<count * resident, 256>>>(); });
  };
  *found++ = (waves(1 + WAVES) - waves(1)) / WAVES;
  const auto additions = [&](int rounds) {
    return least([&] { add_one_word<<<sms, 32>>>(sum, rounds); });
  };
  *found++ = (additions(8 + ROUNDS) - additions(8)) / (32.0 * sms * ROUNDS);
  const auto shared = [&](int rounds) {
    return least([&] { add_shared_word<<<1, 256>>>(sum, rounds); });
  };
  *found++ = (shared(8 + ROUNDS) - shared(8)) / (256.0 * ROUNDS);
  cudaFree(out), cudaFree(data);
  return cudaGetLastError();
}
