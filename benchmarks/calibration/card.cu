// What benchmarks/calibrate.py measures on a card. A kernel ends with a store that never happens, so
// that nothing before it is left out.
using u32 = unsigned int;

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
// Products of 16 by 8 by TENSOR_K, eight sums for each warp, `rounds` of each.
#define SUMS "{%0, %1, %2, %3}"
extern "C" __global__ void tensor(float* out, int rounds) {
  u32 a[4], b[2];
  for (int i = 0; i < 4; ++i) a[i] = 0x2E003800u + threadIdx.x * 0x00110007u + i;
  for (int i = 0; i < 2; ++i) b[i] = 0x31003400u + threadIdx.x * 0x00070011u + i;
  float sums[8][4] = {};
  for (int r = 0; r < rounds; ++r)
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float(&s)[4] = sums[i];
#if TENSOR_K == 16
      asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " SUMS ", {%4, %5, %6, %7}, {%8, %9}, " SUMS ";"
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
