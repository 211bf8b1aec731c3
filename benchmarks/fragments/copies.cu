// Bulk copies, by tensor maps and without. What a copy brings lies among words that it must leave
// alone, and all of them are the result.
#include <cstdint>

using u32 = uint32_t;
using u64 = uint64_t;
using u8 = uint8_t;

constexpr u32 THREADS = 128, WORDS = 2048;  // in shared memory
constexpr int PATIENCE = 1 << 16;           // a copy of other bytes than expected never arrives

struct Copy {
  u32 place;     // in shared memory, of bytes
  u32 bytes;     // that arrive
  int at[5];     // coordinates; in those of plain copies the first is the place in global memory
  u32 receivers; // of a multicast: the blocks of the cluster, a bit for each
};

__device__ u32 shared(const void* pointer) { return u32(__cvta_generic_to_shared(pointer)); }

struct Received {
  u32 words[WORDS];
  u64 barrier;

  __device__ void prepare() {
    for (u32 w = threadIdx.x; w < WORDS; w += THREADS) words[w] = ~w;
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared(&barrier)) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
  }
  __device__ void expect(u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared(&barrier)),
                 "r"(bytes)
                 : "memory");
  }
  __device__ void write(u32* to, bool expected) {
    u32 arrived = !expected;
    for (int tries = 0; !arrived && tries < PATIENCE; ++tries)
      asm volatile("{\n.reg .pred p;\n"
                   "mbarrier.test_wait.parity.shared.b64 p, [%1], 0;\n"
                   "selp.u32 %0, 1, 0, p;\n}"
                   : "=r"(arrived)
                   : "r"(shared(&barrier))
                   : "memory");
    for (u32 w = threadIdx.x; w < WORDS; w += THREADS) to[w] = words[w];
    if (threadIdx.x == 0) to[WORDS] = arrived;
  }
};

// Maps that lie in global memory: what the copies' engine remembers of other maps there is old.
__device__ const u8* fresh(const u8* map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
  return map;
}

__device__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

#define BRING "cp.async.bulk.tensor."
#define BROUGHT "d.shared::cluster.global.mbarrier::complete_tx::bytes"
#define TENSOR(rank, coordinates, out_coordinates, ...)                                        \
  extern "C" __global__ void bring_##rank(const u8* maps, const Copy* copies, u32* results) { \
    __shared__ alignas(1024) Received in;                                                      \
    const Copy& copy = copies[blockIdx.x];                                                     \
    in.prepare();                                                                              \
    if (threadIdx.x == 0) {                                                                    \
      in.expect(copy.bytes);                                                                   \
      asm volatile(BRING #rank BROUGHT " [%0], [%1, {" coordinates "}], [%2];" ::"r"(          \
                       shared(in.words) + copy.place),                                         \
                   "l"(fresh(maps + 128 * blockIdx.x)), "r"(shared(&in.barrier)), __VA_ARGS__  \
                   : "memory");                                                                \
    }                                                                                          \
    in.write(results + blockIdx.x * (WORDS + 1), true);                                        \
  }                                                                                            \
  extern "C" __global__ void take_##rank(const u8* maps, const Copy* copies, u32* results) {  \
    __shared__ alignas(1024) u32 words[WORDS];                                                 \
    const Copy& copy = copies[blockIdx.x];                                                     \
    for (u32 w = threadIdx.x; w < WORDS; w += THREADS)                                         \
      words[w] = (blockIdx.x * WORDS + w) * 2654435761u;                                       \
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");                               \
    __syncthreads();                                                                           \
    if (threadIdx.x) return;                                                                   \
    asm volatile(BRING #rank "d.global.shared::cta.bulk_group [%0, {" out_coordinates          \
                             "}], [%1];" ::"l"(fresh(maps + 128 * blockIdx.x)),                \
                 "r"(shared(words) + copy.place), __VA_ARGS__                                  \
                 : "memory");                                                                  \
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");     \
  }
TENSOR(1, "%3", "%2", "r"(copy.at[0]))
TENSOR(2, "%3, %4", "%2, %3", "r"(copy.at[0]), "r"(copy.at[1]))
TENSOR(3, "%3, %4, %5", "%2, %3, %4", "r"(copy.at[0]), "r"(copy.at[1]), "r"(copy.at[2]))
TENSOR(4, "%3, %4, %5, %6", "%2, %3, %4, %5", "r"(copy.at[0]), "r"(copy.at[1]),
       "r"(copy.at[2]), "r"(copy.at[3]))
TENSOR(5, "%3, %4, %5, %6, %7", "%2, %3, %4, %5, %6", "r"(copy.at[0]), "r"(copy.at[1]),
       "r"(copy.at[2]), "r"(copy.at[3]), "r"(copy.at[4]))

// A copy for each cluster of two blocks; the blocks take turns in asking for it.
extern "C" __global__ void __cluster_dims__(2)
    multicast(const u8* maps, const Copy* copies, u32* results) {
  __shared__ alignas(1024) Received in;
  const u32 cluster = blockIdx.x / 2, rank = blockIdx.x % 2;
  const Copy& copy = copies[cluster];
  const bool receives = copy.receivers >> rank & 1;
  in.prepare();
  if (threadIdx.x == 0 && receives) in.expect(copy.bytes);
  cluster_barrier();
  if (threadIdx.x == 0 && rank == cluster % 2)
    asm volatile(BRING "2" BROUGHT ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(
                     shared(in.words) + copy.place),
                 "l"(fresh(maps + 128 * cluster)), "r"(shared(&in.barrier)), "r"(copy.at[0]),
                 "r"(copy.at[1]), "h"(uint16_t(copy.receivers))
                 : "memory");
  cluster_barrier();  // the simulator would let the other block lose its patience first
  in.write(results + blockIdx.x * (WORDS + 1), receives);
  cluster_barrier();
}

extern "C" __global__ void bring_plain(const u8* source, const Copy* copies, u32* results) {
  __shared__ alignas(1024) Received in;
  const Copy& copy = copies[blockIdx.x];
  in.prepare();
  if (threadIdx.x == 0) {
    in.expect(copy.bytes);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(shared(in.words) + copy.place),
                 "l"(source + copy.at[0]), "r"(copy.bytes), "r"(shared(&in.barrier))
                 : "memory");
  }
  in.write(results + blockIdx.x * (WORDS + 1), true);
}

extern "C" __global__ void take_plain(const Copy* copies, u8* results) {
  __shared__ alignas(1024) u32 words[WORDS];
  const Copy& copy = copies[blockIdx.x];
  for (u32 w = threadIdx.x; w < WORDS; w += THREADS)
    words[w] = (blockIdx.x * WORDS + w) * 2654435761u;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x) return;
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                   results + 4 * WORDS * blockIdx.x + copy.at[0]),
               "r"(shared(words) + copy.place), "r"(copy.bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}
