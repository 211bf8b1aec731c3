// One fragment for each block through one instruction. Fragments lie in memory register by
// register, each with a word of every lane: what the layouts are does not matter here.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>

using namespace nvcuda;
using u32 = uint32_t;
using u64 = uint64_t;
#define KERNEL extern "C" __global__ void
#define ARGUMENTS const u32 *A, const u32 *B, const u32 *C, u32 *D

template <int N> __device__ void load(u32 (&to)[N], const u32* from, int threads) {
  for (int i = 0; i < N; ++i) to[i] = from[(blockIdx.x * N + i) * threads + threadIdx.x];
}
template <int N> __device__ void store(u32* to, const u32 (&from)[N], int threads) {
  for (int i = 0; i < N; ++i) to[(blockIdx.x * N + i) * threads + threadIdx.x] = from[i];
}

#define MMA4(name, text)                                                               \
  KERNEL name(ARGUMENTS) {                                                             \
    u32 a[4], b[2], c[4];                                                              \
    load(a, A, 32), load(b, B, 32), load(c, C, 32);                                    \
    asm volatile(text " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));  \
    store(D, c, 32);                                                                   \
  }
MMA4(mma_m16n8k16_f32_f16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
MMA4(mma_m16n8k16_f32_bf16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
KERNEL mma_m16n8k16_f16_f16(ARGUMENTS) {
  u32 a[4], b[2], c[2];
  load(a, A, 32), load(b, B, 32), load(c, C, 32);
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, "
      "{%0, %1};"
      : "+r"(c[0]), "+r"(c[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  store(D, c, 32);
}
#define MMA2(name, text)                                                       \
  KERNEL name(ARGUMENTS) {                                                     \
    u32 a[2], b[1], c[4];                                                      \
    load(a, A, 32), load(b, B, 32), load(c, C, 32);                            \
    asm volatile(text " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"   \
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])              \
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));                           \
    store(D, c, 32);                                                           \
  }
MMA2(mma_m16n8k8_f32_f16, "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32")
MMA2(mma_m16n8k8_f32_bf16, "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32")
KERNEL mma_m16n8k8_f16_f16(ARGUMENTS) {
  u32 a[2], b[1], c[2];
  load(a, A, 32), load(b, B, 32), load(c, C, 32);
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"
      : "+r"(c[0]), "+r"(c[1])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
  store(D, c, 32);
}
KERNEL mma_m8n8k4_f32_f16(ARGUMENTS) {
  u32 a[2], b[2], c[8];
  load(a, A, 32), load(b, B, 32), load(c, C, 32);
  asm volatile(
      "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, "
      "{%8, %9}, {%10, %11}, {%0, %1, %2, %3, %4, %5, %6, %7};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]), "+r"(c[4]), "+r"(c[5]), "+r"(c[6]),
        "+r"(c[7])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]));
  store(D, c, 32);
}

// wmma keeps its layouts to itself: whole matrices, in rows.
template <int M, int N, class T, class Sum> __device__ void by_wmma(ARGUMENTS) {
  wmma::fragment<wmma::matrix_a, M, N, 16, T, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, M, N, 16, T, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, M, N, 16, Sum> c;
  const int at = blockIdx.x;
  wmma::load_matrix_sync(a, reinterpret_cast<const T*>(A) + at * M * 16, 16);
  wmma::load_matrix_sync(b, reinterpret_cast<const T*>(B) + at * N * 16, N);
  wmma::load_matrix_sync(c, reinterpret_cast<const Sum*>(C) + at * M * N, N, wmma::mem_row_major);
  wmma::mma_sync(c, a, b, c);
  wmma::store_matrix_sync(reinterpret_cast<Sum*>(D) + at * M * N, c, N, wmma::mem_row_major);
}
KERNEL wmma_m16n16k16_f32_f16(ARGUMENTS) { by_wmma<16, 16, half, float>(A, B, C, D); }
KERNEL wmma_m16n16k16_f16_f16(ARGUMENTS) { by_wmma<16, 16, half, half>(A, B, C, D); }
KERNEL wmma_m32n8k16_f32_bf16(ARGUMENTS) { by_wmma<32, 8, __nv_bfloat16, float>(A, B, C, D); }
KERNEL wmma_m8n32k16_f32_bf16(ARGUMENTS) { by_wmma<8, 32, __nv_bfloat16, float>(A, B, C, D); }
