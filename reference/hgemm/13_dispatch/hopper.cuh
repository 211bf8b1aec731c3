// What Hopper adds, one function for each PTX instruction: mbarriers, TMA, and the tensor maps that
// TMA reads. "PTX ISA" is NVIDIA's manual; the functions bear its names where they can.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "element.cuh"

// --- mbarriers: a phase ends when all arrivals have come, and all bytes that were announced

using Barrier = uint64_t;

__device__ uint32_t shared_address(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }

__device__ void barrier_init(Barrier* b, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(arrivals));
}
// TMA and the other blocks of the cluster see barriers that were initialised before.
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

// --- clusters: blocks that run at the same time, and reach each other's shared memory

__device__ int cluster_rank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// All blocks of the cluster have begun, and see each other's barriers, if these were initialised as
// barrier_init_done says. `.release` would add MEMBAR.ALL.GPU.
__device__ void cluster_start() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// To the same place in the block `rank` of the cluster, whose barrier learns of the bytes.
__device__ void store_at(float4* to, int rank, float4 v, Barrier* arrived) {
  asm volatile(
      "{\n"
      ".reg .b32 there, arrived;\n"
      "mapa.shared::cluster.u32 there, %0, %2;\n"
      "mapa.shared::cluster.u32 arrived, %1, %2;\n"
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [there], "
      "{%3, %4, %5, %6}, [arrived];\n"
      "}" ::"r"(shared_address(to)),
      "r"(shared_address(arrived)), "r"(rank), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
      : "memory");
}
// Arrives at the same barrier of the block `rank` of the cluster. `.release.cluster` would let the
// warp wait for all of its writes, with MEMBAR.ALL.GPU, which takes long. There are none to wait
// for, since wgmma only reads the tile.
__device__ void barrier_arrive_at(Barrier* b, int rank) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
      "}" ::"r"(shared_address(b)),
      "r"(rank)
      : "memory");
}

// --- a barrier for each warpgroup that multiplies

__device__ void warpgroup_sync(int number) {
  asm volatile("bar.sync %0, 128;" ::"r"(number + 1) : "memory");
}

// One warpgroup lets another go on that waits for it, at a barrier of both.
__device__ void let_go_on(int barrier) {
  asm volatile("bar.arrive %0, 256;" ::"r"(barrier) : "memory");
}
__device__ void wait_until_let(int barrier) {
  asm volatile("bar.sync %0, 256;" ::"r"(barrier) : "memory");
}

// --- launches that overlap, where the later one has the attribute of programmatic serialisation

// Until all launches before have ended, and what they wrote can be read.
__device__ void wait_for_launches_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
// The launch that follows may begin, as soon as all blocks have said so or have ended.
__device__ void let_next_launch_begin() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
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

// One thread of a warp, of which the compiler knows that it is one.
__device__ bool elected() {
  uint32_t chosen;
  asm volatile(
      "{\n"
      ".reg .pred chosen;\n"
      "elect.sync _|chosen, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, chosen;\n"
      "}"
      : "=r"(chosen));
  return chosen;
}

// The tile of `map` whose first element is (k, line); `arrived` learns of its bytes.
__device__ void tma_load(void* to, const CUtensorMap* map, int k, int line, Barrier* arrived) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(to)),
      "l"(map), "r"(k), "r"(line), "r"(shared_address(arrived))
      : "memory");
}
// The same to every block of the cluster whose bit is set, at the same place and barrier in each.
__device__ void tma_load_to_all(void* to, const CUtensorMap* map, int k, int line, Barrier* arrived,
                                uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(to)),
      "l"(map), "r"(k), "r"(line), "r"(shared_address(arrived)), "h"(blocks)
      : "memory");
}
// From shared to global memory: fence, store ..., commit; wait before the tile is used again.
__device__ void tma_store_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ void tma_store(const CUtensorMap* map, int column, int line, const void* from) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
      "r"(column), "r"(line), "r"(shared_address(from))
      : "memory");
}
__device__ void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Until at most PENDING of this thread's stores still read shared memory.
template <int PENDING>
__device__ void tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}
__device__ void prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
// Four 8 x 8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8.
// Of every matrix, lane l holds elements 2 (l % 4) and the next of row l / 4.
__device__ void store_matrices(void* row, const uint32_t (&of)[4]) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)),
      "r"(of[0]), "r"(of[1]), "r"(of[2]), "r"(of[3])
      : "memory");
}

// The same, but of every matrix lane l holds elements 2 (l % 4) and the next of column l / 4.
__device__ void store_matrices_turned(void* row, const uint32_t (&of)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   shared_address(row)),
               "r"(of[0]), "r"(of[1]), "r"(of[2]), "r"(of[3])
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

// A matrix of 16-bit elements in `lines` lines of `length`, to be moved in tiles of `tile_lines`
// lines of `tile_length`. If that is 64, a line is 128 bytes, and its eight 16-byte pieces are
// swizzled. What lies outside the matrix is read as zero, and not written. `length` is a multiple
// of 8.
inline CUtensorMap tensor_map(const Element* matrix, int lines, int length, int tile_lines,
                              int tile_length = 64) {
  static const Encode encode = encoder();
  const cuuint64_t extents[] = {cuuint64_t(length), cuuint64_t(lines)};
  const cuuint64_t strides[] = {cuuint64_t(length) * sizeof(Element)};  // bytes from line to line
  const cuuint32_t tile[] = {cuuint32_t(tile_length), cuuint32_t(tile_lines)};
  const cuuint32_t steps[] = {1, 1};
  const CUtensorMapSwizzle swizzle =
      tile_length == 64 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE;
  CUtensorMap map;
  const CUresult failed =
      encode(&map, MAP_TYPE, 2, const_cast<Element*>(matrix), extents, strides, tile, steps,
             CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (failed) {
    std::fprintf(stderr, "cuTensorMapEncodeTiled: error %d\n", int(failed));
    std::abort();
  }
  return map;
}
