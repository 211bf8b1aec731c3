// What card.py measures. A kernel of rates ends with a store that never happens, so
// that nothing before it is left out.
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

#if __CUDA_ARCH__ >= 750
// Products of 16 by 8 by 16, on Turing by 8: eight sums for each warp, `rounds` of each.
#define SUMS "{%0, %1, %2, %3}"
extern "C" __global__ void tensor(float* out, int rounds) {
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
}
#endif

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
