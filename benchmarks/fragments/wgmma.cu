// wgmma on tiles that descriptors tell of. All blocks have the same words in shared memory, each
// turned by its own distance; where A and B lie among them is each block's own, too. A kernel for
// each form is in forms.hpp, which products.py writes.
#include <cstdint>

using u32 = uint32_t;
using u64 = uint64_t;

constexpr int THREADS = 128, WORDS = 48 << 10 >> 2, STARTS = 1 << 15;

#define LOAD_SHARED const u64 a = descriptors[2 * blockIdx.x] + (address >> 4);
#define INPUT_SHARED "l"(a)
#define LOAD_REGISTERS                                                                     \
  u32 a[4];                                                                                \
  for (u32 r = 0; r < 4; ++r) a[r] = fill[(blockIdx.x * 37 + r * THREADS + t) % WORDS];
#define INPUT_REGISTERS "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])

// count: registers of the sums, which are what follows the place of A
#define WGMMA(name, count, instruction, A, ...)                                            \
  extern "C" __global__ void name(const u32* fill, const u64* descriptors,                 \
                                  const u32* starts, u32* results) {                       \
    __shared__ alignas(1024) u32 words[WORDS];                                             \
    const u32 t = threadIdx.x, address = u32(__cvta_generic_to_shared(words));             \
    const uint4* const from = reinterpret_cast<const uint4*>(fill);                        \
    for (u32 q = t; q < WORDS / 4; q += THREADS)                                           \
      reinterpret_cast<uint4*>(words)[q] = from[(q + blockIdx.x) % (WORDS / 4)];           \
    u32 c[count];                                                                          \
    for (u32 i = 0; i < count; ++i)                                                        \
      c[i] = starts[(blockIdx.x * 37 + i * THREADS + t) % STARTS];                         \
    LOAD_##A const u64 b = descriptors[2 * blockIdx.x + 1] + (address >> 4);               \
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");                           \
    __syncthreads();                                                                       \
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                                \
    asm volatile(instruction : __VA_ARGS__ : INPUT_##A, "l"(b));                           \
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");                         \
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");                         \
    for (u32 i = 0; i < count; ++i)                                                        \
      results[(blockIdx.x * count + i) * THREADS + t] = c[i];                              \
  }

#include "forms.hpp"
