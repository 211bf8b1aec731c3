// What Hopper adds, one function for each PTX instruction: mbarriers, TMA, and the tensor maps that
// TMA reads. "PTX ISA" is NVIDIA's manual; the functions bear its names where they can.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

// --- mbarriers: a phase ends when all arrivals have come, and all bytes that were announced

using Barrier = uint64_t;

__device__ uint32_t shared_address(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }

__device__ void barrier_init(Barrier* b, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(arrivals));
}
// TMA sees barriers that were initialised before.
__device__ void barrier_init_done() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ void barrier_arrive(Barrier* b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(b)) : "memory");
}
// Arrives, and announces bytes that TMA will bring.
__device__ void barrier_expect(Barrier* b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(b)),
               "r"(bytes)
               : "memory");
}
// Waits for the end of the phase of this parity: 0, 1, 0, ...
__device__ void barrier_wait(Barrier* b, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}" ::"r"(shared_address(b)),
      "r"(parity)
      : "memory");
}

// --- registers: a warpgroup gives some up, another takes them

template <int COUNT>
__device__ void keep_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT>
__device__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

// --- TMA: one thread asks for a whole tile

// The tile of `map` whose first element is (k, line); `arrived` learns of its bytes.
__device__ void tma_load(void* to, const CUtensorMap* map, int k, int line, Barrier* arrived) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(to)),
      "l"(map), "r"(k), "r"(line), "r"(shared_address(arrived))
      : "memory");
}

// --- tensor maps, made by the host

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                            const cuuint64_t*, const cuuint32_t*, const cuuint32_t*,
                            CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                            CUtensorMapFloatOOBfill);

// The driver's function, without linking the driver.
inline Encode encoder() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault,
                                   &result);
#else
  cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &result);
#endif
  return reinterpret_cast<Encode>(found);
}

// A matrix in `lines` lines of `length` elements, to be moved in tiles of `tile_lines` lines of
// LINE bytes, whose 16-byte pieces are swizzled. What lies outside the matrix is read as zero. A
// line of the matrix takes a multiple of 16 bytes.
template <int LINE, class T>
CUtensorMap tensor_map(const T* matrix, int lines, int length, int tile_lines) {
  static_assert(LINE == 128 || LINE == 64);
  static const Encode encode = encoder();
  const cuuint64_t extents[] = {cuuint64_t(length), cuuint64_t(lines)};
  const cuuint64_t strides[] = {cuuint64_t(length) * sizeof(T)};  // bytes from line to line
  const cuuint32_t tile[] = {LINE / sizeof(T), cuuint32_t(tile_lines)}, steps[] = {1, 1};
  CUtensorMap map;
  const CUresult failed = encode(
      &map, sizeof(T) == 2 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2,
      const_cast<T*>(matrix), extents, strides, tile, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      LINE == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (failed) {
    std::fprintf(stderr, "cuTensorMapEncodeTiled: error %d\n", int(failed));
    std::abort();
  }
  return map;
}
