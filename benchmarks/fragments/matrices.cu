// ldmatrix and stmatrix. Each lane has an address of its own, of a row of 16 bytes.
#include <cstdint>

using u32 = uint32_t;

constexpr u32 WORDS = 1024;  // in shared memory

__device__ u32 row_at(const u32* words, const u32* rows) {
  return u32(__cvta_generic_to_shared(words)) + 16 * rows[blockIdx.x * 32 + threadIdx.x];
}

#define MATRICES(name, text, loads, values)                                              \
  extern "C" __global__ void load_##name(const u32* fill, const u32* rows, u32* results) { \
    __shared__ alignas(16) u32 words[WORDS];                                             \
    const u32 t = threadIdx.x;                                                           \
    for (u32 w = t; w < WORDS; w += 32) words[w] = fill[blockIdx.x * WORDS + w];         \
    __syncwarp();                                                                        \
    u32 r[4] = {};                                                                       \
    asm volatile("ldmatrix.sync.aligned.m8n8." text ".shared.b16 " loads                 \
                 : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3])                        \
                 : "r"(row_at(words, rows)));                                            \
    for (u32 i = 0; i < 4; ++i) results[(blockIdx.x * 4 + i) * 32 + t] = r[i];           \
  }                                                                                      \
  extern "C" __global__ void store_##name(const u32* fill, const u32* rows, u32* results) { \
    __shared__ alignas(16) u32 words[WORDS];                                             \
    const u32 t = threadIdx.x;                                                           \
    for (u32 w = t; w < WORDS; w += 32) words[w] = ~w;                                   \
    u32 r[4];                                                                            \
    for (u32 i = 0; i < 4; ++i) r[i] = fill[blockIdx.x * WORDS + i * 32 + t];            \
    __syncwarp();                                                                        \
    asm volatile("stmatrix.sync.aligned.m8n8." text ".shared.b16 " values                \
                 ::"r"(row_at(words, rows)), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])  \
                 : "memory");                                                            \
    __syncwarp();                                                                        \
    for (u32 w = t; w < WORDS; w += 32) results[blockIdx.x * WORDS + w] = words[w];      \
  }

MATRICES(x1, "x1", "{%0}, [%4];", "[%0], {%1};")
MATRICES(x1_trans, "x1.trans", "{%0}, [%4];", "[%0], {%1};")
MATRICES(x2, "x2", "{%0, %1}, [%4];", "[%0], {%1, %2};")
MATRICES(x2_trans, "x2.trans", "{%0, %1}, [%4];", "[%0], {%1, %2};")
MATRICES(x4, "x4", "{%0, %1, %2, %3}, [%4];", "[%0], {%1, %2, %3, %4};")
MATRICES(x4_trans, "x4.trans", "{%0, %1, %2, %3}, [%4];", "[%0], {%1, %2, %3, %4};")
