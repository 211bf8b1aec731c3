// Copies of 4, 8 or 16 bytes, which may bring zeros instead, and a load of what they brought.
#pragma once

#include "async_copy.cuh"

// BYTES from global to shared memory; where `bytes` is 0 they are not read, but zero. What is not
// in the L2 comes there with the FETCHED bytes around it, so with the line's next K blocks: one by
// one they would take the memory longer.
template <int BYTES, int FETCHED>
__device__ __forceinline__ void copy_async(uint32_t to, const char* from, int bytes) {
#if __CUDA_ARCH__ >= 800
  static_assert(FETCHED == 256 || (FETCHED == 128 && BYTES < 16), "");
  if (BYTES == 16)
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(bytes) : "memory");
  else if (FETCHED == 256)
    asm volatile("cp.async.ca.shared.global.L2::256B [%0], [%1], %3, %2;" ::"r"(to), "l"(from),
                 "r"(bytes), "n"(BYTES) : "memory");
  else
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %3, %2;" ::"r"(to), "l"(from),
                 "r"(bytes), "n"(BYTES) : "memory");
#else
#pragma unroll
  for (int x = 0; x < BYTES; x += 4) {
    const float v = bytes ? *reinterpret_cast<const float*>(from + x) : 0.0f;
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(to + x), "f"(v) : "memory");
  }
#endif
}

__device__ __forceinline__ void load_quad(float* to, uint32_t from) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3]) : "r"(from) : "memory");
}
