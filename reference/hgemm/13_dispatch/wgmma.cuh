// wgmma: the product of two tiles in shared memory by a warpgroup, 128 threads. It runs on its own:
// fence, multiply ..., commit, and wait before anyone uses the sums.
#pragma once

#include <cstdint>

#include "element.cuh"

// Orders a thread's own use of the sums before the multiplications that follow.
__device__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until at most PENDING of the committed groups are still running.
template <int PENDING>
__device__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Where a tile lies: lines of 128 bytes, swizzled as TMA does, in groups of eight lines. The tile
// begins at a multiple of 1024 bytes. Add step_along_k for the next 16 elements of every line.
__device__ uint64_t tile_descriptor(const void* tile) {
  const uint64_t address = __cvta_generic_to_shared(tile);
  constexpr uint64_t GROUP = 1024 / 16, SWIZZLE_128 = 1;
  return (address & 0x3ffff) >> 4 | uint64_t(1) << 16 | GROUP << 32 | SWIZZLE_128 << 62;
}
constexpr int step_along_k = 16 * 2 / 16;

// D[64][N] = X[64][16] * Y[N][16]^T + (adds ? D : 0). Thread t of the warpgroup holds, for
// e = 0 ... N / 2 - 1, row 16 (t / 32) + t % 32 / 4 + 8 (e / 2 % 2), column 8 (e / 4) + 2 (t % 4) +
// e % 2: pairs of neighbours in a row.
template <int N>
__device__ void wgmma(float (&d)[N / 2], uint64_t x, uint64_t y, bool adds);

// asm wants the name of every register, and the text of every number. Of 16 columns a thread has
// eight sums.
#define NAMES_16 "%0, %1, %2, %3, %4, %5, %6, %7"
#define NAMES_32 NAMES_16 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define NAMES_48 NAMES_32 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define NAMES_64 NAMES_48 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES_72 NAMES_64 ", %32, %33, %34, %35"
#define NAMES_80 NAMES_64 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define NAMES_96 NAMES_80 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define NAMES_112 NAMES_96 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define NAMES_128 NAMES_112 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define NAMES_144 NAMES_128 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define NAMES_160 NAMES_144 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define NAMES_176 NAMES_160 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define NAMES_192 NAMES_176 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define NAMES_208 NAMES_192 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define NAMES_224 NAMES_208 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define NAMES_240 NAMES_224 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define NAMES_256 NAMES_240 ", %120, %121, %122, %123, %124, %125, %126, %127"
#define FOUR(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define EIGHT(i) FOUR(i), FOUR(i + 4)
#define SUMS_16 EIGHT(0)
#define SUMS_32 SUMS_16, EIGHT(8)
#define SUMS_48 SUMS_32, EIGHT(16)
#define SUMS_64 SUMS_48, EIGHT(24)
#define SUMS_72 SUMS_64, FOUR(32)
#define SUMS_80 SUMS_64, EIGHT(32)
#define SUMS_96 SUMS_80, EIGHT(40)
#define SUMS_112 SUMS_96, EIGHT(48)
#define SUMS_128 SUMS_112, EIGHT(56)
#define SUMS_144 SUMS_128, EIGHT(64)
#define SUMS_160 SUMS_144, EIGHT(72)
#define SUMS_176 SUMS_160, EIGHT(80)
#define SUMS_192 SUMS_176, EIGHT(88)
#define SUMS_208 SUMS_192, EIGHT(96)
#define SUMS_224 SUMS_208, EIGHT(104)
#define SUMS_240 SUMS_224, EIGHT(112)
#define SUMS_256 SUMS_240, EIGHT(120)
#define WGMMA(N, X, Y, ADDS)                                                                 \
  template <>                                                                                \
  __device__ void wgmma<N>(float (&d)[N / 2], uint64_t x, uint64_t y, bool adds) {           \
    asm volatile(                                                                            \
        "{\n"                                                                                \
        ".reg .pred adds;\n"                                                                 \
        "setp.ne.b32 adds, " ADDS                                                            \
        ", 0;\n"                                                                             \
        "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." ELEMENT "." ELEMENT " {" NAMES_##N \
        "}, " X ", " Y                                                                       \
        ", adds, 1, 1, 0, 0;\n"                                                              \
        "}"                                                                                  \
        : SUMS_##N                                                                           \
        : "l"(x), "l"(y), "r"(int(adds)));                                                   \
  }

WGMMA(16, "%8", "%9", "%10")
WGMMA(32, "%16", "%17", "%18")
WGMMA(48, "%24", "%25", "%26")
WGMMA(64, "%32", "%33", "%34")
WGMMA(72, "%36", "%37", "%38")
WGMMA(80, "%40", "%41", "%42")
WGMMA(96, "%48", "%49", "%50")
WGMMA(112, "%56", "%57", "%58")
WGMMA(128, "%64", "%65", "%66")
WGMMA(144, "%72", "%73", "%74")
WGMMA(160, "%80", "%81", "%82")
WGMMA(176, "%88", "%89", "%90")
WGMMA(192, "%96", "%97", "%98")
WGMMA(208, "%104", "%105", "%106")
WGMMA(224, "%112", "%113", "%114")
WGMMA(256, "%128", "%129", "%130")
