#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#define KERNEL extern "C" __global__ void
#define FULL 0xffffffffu
__device__ int flags[256];
__device__ unsigned count;
__device__ unsigned generation;

// --- within a block

KERNEL exits_before_a_barrier(float* a, float* b) {
  __shared__ float s[128];
  int t = threadIdx.x;
  s[t] = a[t];
  if (t >= 64) {
    b[t] = s[t];
    return;
  }
  __syncthreads();
  s[t + 64] = 1;
  b[t] = s[t];
}
KERNEL exits_without_a_barrier(float* a, float* b) {
  __shared__ float s[128];
  int t = threadIdx.x;
  s[t] = a[t];  // BAD
  if (t >= 64) {
    b[t] = s[t];
    return;
  }
  s[t + 64] = 1;  // BAD
  b[t] = s[t];
}
KERNEL whole_warps_at_two_barriers(float* a, float* b) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = a[t];
  if (t < 32) {
    __syncthreads();  // BAD
    b[t] = s[t + 32];
  } else {
    __syncthreads();  // BAD
    b[t] = 2 * s[t - 32];
  }
}
KERNEL half_a_warp_at_another_barrier(float* a, float* b) {
  int t = threadIdx.x;
  if (t < 48) {
    __syncthreads();  // BAD
    b[t] = a[t];
  } else {
    __syncthreads();  // BAD
    b[t] = 2 * a[t];
  }
}
KERNEL one_barrier_in_a_loop(float* a, float* b, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) {
    __syncthreads();
    sum += a[i];
  }
  b[threadIdx.x] = sum;
}
KERNEL flag_in_shared_memory(float* a, float* b) {
  __shared__ float s[32];
  __shared__ int arrived;
  int t = threadIdx.x;
  if (t == 0) arrived = 0;
  __syncthreads();
  if (t < 32) {
    s[t] = a[t];
    __threadfence_block();
    if (t == 0) atomicExch(&arrived, 1);
  } else {
    while (atomicAdd(&arrived, 0) == 0) {}
    __threadfence_block();
    b[t - 32] = s[63 - t];
  }
}
KERNEL tiles_of_four_warps(float* a, float* b) {
  namespace cg = cooperative_groups;
  auto tile = cg::tiled_partition<128>(cg::this_thread_block());
  int t = threadIdx.x;
  float sum = cg::reduce(tile, a[t], cg::plus<float>());
  b[t] = sum + cg::reduce(tile, -a[t], cg::greater<float>());
}

// A loop that fetches for the next step, the last time for none; the sums then go where it reads.
#define SUM_OF_STEPS                                  \
  __shared__ float s[2][64];                          \
  __shared__ float extra;                             \
  int t = threadIdx.x;                                \
  s[0][t] = a[t];                                     \
  s[1][t] = a[64 + t];                                \
  extra = 0;                                          \
  __syncthreads();                                    \
  float sum = 0, next = s[0][63 - t];                 \
  _Pragma("unroll 1") for (int k = 0; k < n; ++k) {   \
    float now = next;                                 \
    __syncthreads();                                  \
    next = *(volatile float*)&s[(k + 1) & 1][63 - t]; \
    sum += now;                                       \
  }                                                   \
  s[0][t] = sum
KERNEL last_fetch_unused(float* a, float* b, int n) {
  SUM_OF_STEPS;  // BAD
  __syncthreads();
  b[t] = s[0][63 - t];
}
KERNEL last_fetch_stored(float* a, float* b, int n) {
  SUM_OF_STEPS;  // BAD
  b[t] = next;
}
KERNEL last_fetch_votes(float* a, float* b, int n) {
  SUM_OF_STEPS;  // BAD
  b[t] = __syncthreads_count(next > 3);
}
KERNEL last_fetch_added(float* a, float* b, int n) {
  SUM_OF_STEPS;  // BAD
  atomicAdd(&extra, next);
  __syncthreads();
  b[t] = extra;
}
KERNEL last_fetch_kept(float* a, float* b, int n) {
  float kept[4] = {};
  SUM_OF_STEPS;  // BAD
  kept[t % n] = next;
  b[t] = kept[(t + 1) % n];
}
KERNEL last_fetch_returns(float* a, float* b, int n) {
  SUM_OF_STEPS;  // BAD
  __syncthreads();
  s[1][t] = next;
  __syncthreads();
  b[t] = s[1][63 - t];
}

// --- between blocks

KERNEL writes_what_others_read(float* a, float* b) {
  int t = blockIdx.x * 64 + threadIdx.x, n = gridDim.x * 64;
  float v = a[(t + 64) % n];  // BAD
  __syncthreads();
  a[t] = v + 1;  // BAD
}
KERNEL fence_but_no_flag(float* a, float* b) {
  int t = threadIdx.x;
  b[blockIdx.x * 64 + t] = a[t];  // BAD
  __threadfence();
  __syncthreads();
  if (blockIdx.x == gridDim.x - 1) a[t] = b[t] + 1;  // BAD
}
KERNEL last_block_adds(float* a, float* b) {
  __shared__ bool last;
  int t = threadIdx.x;
  b[blockIdx.x * 64 + t] = a[t];
  __threadfence();
  __syncthreads();
  if (t == 0) last = atomicAdd(&count, 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  float sum = 0;
  for (int g = 0; g < gridDim.x; ++g) sum += b[g * 64 + t];
  __syncthreads();
  b[t] = sum;  // what others wrote
  if (t == 0) count = 0;
}
KERNEL no_barrier_ahead_of_the_count(float* a, float* b) {
  __shared__ bool last;
  int t = threadIdx.x;
  b[blockIdx.x * 64 + t] = a[t];
  __threadfence();
  if (t == 0) last = atomicAdd(&count, 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  float sum = 0;
  for (int g = 0; g < gridDim.x; ++g) sum += b[g * 64 + t];  // BAD
  a[t] = sum;
}
KERNEL no_fence_ahead_of_the_flag(float* a, float* b) {
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    b[t] = a[t];
    __syncthreads();
    if (t == 0) atomicExch(&flags[0], 1);
  } else {
    if (t == 0)
      while (atomicAdd(&flags[0], 0) == 0) {}
    __threadfence();
    __syncthreads();
    b[64 + t] = b[t];  // BAD
  }
}
KERNEL flags_in_a_chain(float* a, float* b) {
  int t = threadIdx.x;
  volatile int* flag = flags;
  if (t == 0 && blockIdx.x)
    while (flag[blockIdx.x - 1] == 0) {}
  __threadfence();
  __syncthreads();
  b[t] = blockIdx.x ? b[t] + a[t] : a[t];
  __threadfence();
  __syncthreads();
  if (t == 0) flag[blockIdx.x] = 1;
}
KERNEL no_barrier_behind_the_flag(float* a, float* b) {
  int t = threadIdx.x;
  volatile int* flag = flags;
  if (t == 0 && blockIdx.x)
    while (flag[blockIdx.x - 1] == 0) {}
  __threadfence();
  b[t] = blockIdx.x ? b[t] + a[t] : a[t];  // BAD
  __threadfence();
  __syncthreads();
  if (t == 0) flag[blockIdx.x] = 1;
}
KERNEL later_blocks_first(float* a, float* b) {
  int t = threadIdx.x;
  volatile int* flag = flags;
  if (t == 0 && blockIdx.x + 1 < gridDim.x)
    while (flag[blockIdx.x + 1] == 0) {}
  __threadfence();
  __syncthreads();
  b[t] = b[t] + a[t];
  __threadfence();
  __syncthreads();
  if (t == 0) flag[blockIdx.x] = 1;
}
__device__ void grid_barrier() {
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned mine = *(volatile unsigned*)&generation;
    __threadfence();
    if (atomicAdd(&count, 1) == gridDim.x - 1) {
      count = 0;
      __threadfence();
      atomicAdd(&generation, 1);
    } else {
      while (*(volatile unsigned*)&generation == mine) {}  // BAD
    }
    __threadfence();
  }
  __syncthreads();
}
KERNEL grid_barriers(float* a, float* b) {
  int t = blockIdx.x * 64 + threadIdx.x, n = gridDim.x * 64;
  for (int step = 0; step < 4; ++step) {
    float v = a[(t + 64) % n];
    grid_barrier();
    a[t] = v + 1;
    grid_barrier();
  }
}
KERNEL grid_syncs(float* a, float* b) {
  int t = blockIdx.x * 64 + threadIdx.x, n = gridDim.x * 64;
  for (int step = 0; step < 4; ++step) {
    float v = a[(t + 64) % n];
    cooperative_groups::this_grid().sync();
    a[t] = v + 1;
    cooperative_groups::this_grid().sync();
  }
}
KERNEL one_grid_sync_too_few(float* a, float* b) {
  int t = blockIdx.x * 64 + threadIdx.x, n = gridDim.x * 64;
  for (int step = 0; step < 4; ++step) {
    float v = a[(t + 64) % n];  // BAD
    cooperative_groups::this_grid().sync();
    a[t] = v + 1;  // BAD
  }
}
KERNEL asks_for_a_grid(float* a, float* b) {
  b[blockIdx.x * 64 + threadIdx.x] = cooperative_groups::this_grid().is_valid();
}
KERNEL waits_for_nobody(float* a, float* b) {
  if (threadIdx.x == 0)
    while (atomicAdd(&flags[blockIdx.x], 0) == 0) {}  // BAD
  __syncthreads();
  b[threadIdx.x] = a[threadIdx.x];
}

// --- flags, locks and fences

KERNEL no_fence_behind_the_flag(float* a, float* b) {
  int t = threadIdx.x;
  volatile int* flag = flags;
  if (t == 0 && blockIdx.x)
    while (flag[blockIdx.x - 1] == 0) {}
  __syncthreads();
  b[t] = blockIdx.x ? b[t] + a[t] : a[t];  // BAD
  __threadfence();
  __syncthreads();
  if (t == 0) flag[blockIdx.x] = 1;
}
KERNEL volatile_data_behind_the_flag(float* a, volatile float* b) {
  int t = threadIdx.x;
  volatile int* flag = flags;
  if (t == 0 && blockIdx.x)
    while (flag[blockIdx.x - 1] == 0) {}
  __syncthreads();
  b[t] = blockIdx.x ? b[t] + a[t] : a[t];
  __threadfence();
  __syncthreads();
  if (t == 0) flag[blockIdx.x] = 1;
}
KERNEL fence_ahead_of_the_data(float* a, float* b) {
  int t = threadIdx.x;
  volatile int* flag = flags;
  if (blockIdx.x == 0) {
    __threadfence();
    b[t] = a[t];
    __syncthreads();
    if (t == 0) flag[0] = 1;
  } else {
    if (t == 0)
      while (flag[0] == 0) {}
    __threadfence();
    __syncthreads();
    b[64 + t] = b[t];  // BAD
  }
}
KERNEL fence_of_another_warp(float* a, float* b) {
  int t = threadIdx.x;
  volatile int* flag = flags;
  if (blockIdx.x == 0) {
    if (t >= 32) __threadfence();
    __syncthreads();
    b[t] = a[t];
    if (t >= 32) __threadfence();
    if (t == 0) flag[0] = 1;
  } else {
    if (t == 0)
      while (flag[0] == 0) {}
    __threadfence();
    __syncthreads();
    if (t < 32) b[64 + t] = b[t];  // BAD
  }
}
KERNEL fence_of_the_block(float* a, float* b) {
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    b[t] = a[t];
    __threadfence_block();
    __syncthreads();
    if (t == 0) atomicExch(&flags[0], 1);
  } else {
    if (t == 0)
      while (atomicAdd(&flags[0], 0) == 0) {}
    __threadfence();
    __syncthreads();
    b[64 + t] = b[t];  // BAD
  }
}
KERNEL fence_ahead_of_the_barrier(float* a, float* b) {
  int t = threadIdx.x;
  volatile int* flag = flags;
  if (blockIdx.x == 0) {
    b[t] = a[t];
    __threadfence();
    __syncthreads();
    if (t == 0) flag[0] = 1;
  } else {
    if (t == 0)
      while (flag[0] == 0) __nanosleep(20);
    __syncthreads();
    __threadfence();
    b[64 + t] = b[t];
  }
}
// With its lock, each block adds to b[0]; LOCKED is what stands around that.
#define LOCKED(CAS, BEHIND, AHEAD, EXCH)            \
  if (threadIdx.x) return;                          \
  while (CAS(&flags[0], 0, 1) != 0) {}              \
  BEHIND;                                           \
  *(volatile float*)b = *(volatile float*)b + a[1]; \
  AHEAD;                                            \
  EXCH(&flags[0], 0)
KERNEL lock(float* a, float* b) { LOCKED(atomicCAS, __threadfence(), __threadfence(), atomicExch); }
KERNEL lock_of_the_block(float* a, float* b) {
  if (threadIdx.x % 32) return;
  while (atomicCAS_block(&flags[0], 0, 1) != 0) {}
  __threadfence_block();
  b[0] += a[1];
  __threadfence_block();
  atomicExch_block(&flags[0], 0);
}
KERNEL lock_without_a_fence_behind(float* a, float* b) {
  LOCKED(atomicCAS, , __threadfence(), atomicExch);  // BAD
}
KERNEL lock_without_a_fence_ahead(float* a, float* b) {
  LOCKED(atomicCAS, __threadfence(), , atomicExch);  // BAD
}
KERNEL lock_with_narrow_fences(float* a, float* b) {
  LOCKED(atomicCAS, __threadfence_block(), __threadfence_block(), atomicExch);  // BAD
}
KERNEL lock_with_the_scope_of_a_block(float* a, float* b) {
  LOCKED(atomicCAS_block, __threadfence(), __threadfence(), atomicExch_block);  // BAD
}
KERNEL adds_by_compare_and_swap(float* a, float* b) {
  int* sum = (int*)b;
  int guess, found = *sum;
  do found = atomicCAS(sum, guess = found, guess + 1);
  while (found != guess);
}
KERNEL looks_before_an_atomic(float* a, float* b) {
  int* most = (int*)b;
  const int mine = blockIdx.x * blockDim.x + threadIdx.x;
  if (*most < mine)          // BAD
    atomicMax(most, mine);  // BAD
}
KERNEL volatile_beside_an_atomic(float* a, volatile float* b) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) atomicExch((float*)b, a[1]);  // BAD
  else b[0] = a[2];                                  // BAD
}
KERNEL last_block_takes_volatile_sums(float* a, float* b) {
  volatile float* sums = b + 64;
  if (threadIdx.x) return;
  sums[blockIdx.x] = a[blockIdx.x];  // BAD
  __threadfence();
  if (blockIdx.x < gridDim.x - 1) return;
  float sum = 0;
  for (int g = 0; g < gridDim.x; ++g) sum += sums[g];  // BAD
  b[0] = sum;
}
KERNEL last_block_looks_at_volatile_sums(float* a, float* b) {
  volatile float* sums = b + 64;
  if (threadIdx.x) return;
  sums[blockIdx.x] = a[blockIdx.x];  // BAD
  __threadfence();
  if (blockIdx.x < gridDim.x - 1) return;
  for (int g = 0; g < gridDim.x; ++g)
    if (sums[g] > 0) b[g] = a[g];  // BAD
}
__device__ __noinline__ int asked(volatile int* flag) { return *flag; }
KERNEL asks_by_a_function(float* a, float* b) {
  int t = threadIdx.x;
  if (t == 0 && blockIdx.x)
    while (asked(&flags[blockIdx.x - 1]) == 0) {}
  __threadfence();
  __syncthreads();
  b[t] = blockIdx.x ? b[t] + a[t] : a[t];
  __threadfence();
  __syncthreads();
  if (t == 0) *(volatile int*)&flags[blockIdx.x] = 1;
}
KERNEL asks_by_shared_memory(float* a, float* b) {
  __shared__ int ready;
  int t = threadIdx.x;
  volatile int* flag = flags;
  while (blockIdx.x) {
    if (t == 0) ready = flag[blockIdx.x - 1];
    __threadfence();
    __syncthreads();
    if (ready) break;
    __syncthreads();
  }
  b[t] = blockIdx.x ? b[t] + a[t] : a[t];
  __threadfence();
  __syncthreads();
  if (t == 0) flag[blockIdx.x] = 1;
}
KERNEL volatile_flag_in_shared_memory(float* a, float* b) {
  __shared__ float s[32];
  __shared__ volatile int ready;
  int t = threadIdx.x;
  if (t == 0) ready = 0;
  __syncthreads();
  if (t < 32) {
    s[t] = a[t];
    __threadfence_block();
    __syncwarp();
    if (t == 0) ready = 1;
  } else {
    while (ready == 0) {}
    __threadfence_block();
    b[t - 32] = s[63 - t];
  }
}
KERNEL volatile_flag_without_a_fence(float* a, float* b) {
  __shared__ float s[32];
  __shared__ volatile int ready;
  int t = threadIdx.x;
  if (t == 0) ready = 0;
  __syncthreads();
  if (t < 32) {
    s[t] = a[t];  // BAD
    __syncwarp();
    if (t == 0) ready = 1;
  } else {
    while (ready == 0) {}
    __threadfence_block();
    b[t - 32] = s[63 - t];  // BAD
  }
}

// --- atomic operations and plain writes

KERNEL clears_and_adds(float* a, float* b) {
  int t = threadIdx.x;
  if (blockIdx.x == 0 && t == 0) b[0] = 0;  // BAD
  atomicAdd(b, a[t]);                       // BAD
}
KERNEL adds(float* a, float* b) { atomicAdd(b, a[threadIdx.x]); }
KERNEL clears_shared_and_adds(float* a, float* b) {
  __shared__ float sum;
  int t = threadIdx.x;
  if (t == 0) sum = 0;    // BAD
  atomicAdd(&sum, a[t]);  // BAD
  __syncthreads();
  b[t] = sum;
}
KERNEL adds_for_the_block(float* a, float* b) {
  atomicAdd_block(b, a[threadIdx.x]);  // BAD
}
KERNEL adds_in_its_own_block(float* a, float* b) {
  atomicAdd_block(b + blockIdx.x, a[threadIdx.x]);
}

// --- what is read and then overwritten

KERNEL pairs_in_place(float* a, float* b) {
  int t = threadIdx.x;
  for (int s = blockDim.x; s > 0; s /= 2) {
    if (t < s) a[t] += a[t + s];
    __syncthreads();
  }
  if (t == 0) b[0] = a[0];
}
KERNEL pairs_without_one_barrier(float* a, float* b) {
  int t = threadIdx.x;
  for (int s = blockDim.x; s > 0; s /= 2) {
    if (t < s) a[t] += a[t + s];  // BAD
    if (s != 64) __syncthreads();
  }
  if (t == 0) b[0] = a[0];
}
KERNEL reads_two_arrays(float* a, float* b) {
  int t = threadIdx.x;
  if (blockIdx.x == 0) b[128 + t] = (t % 2 ? a : b)[t];  // BAD
  else a[t] = 1;                                         // BAD
}
KERNEL writes_what_is_there(float* a, float* b) {
  b[threadIdx.x] = a[threadIdx.x] + 1;  // BAD
}
KERNEL reads_as_constant(float* a, float* b) {
  int t = threadIdx.x;
  b[t] = a[t];
  __syncthreads();
  b[64 + t] = __ldg(&b[63 - t]);  // BAD
}
__constant__ float table[64];
KERNEL reads_a_constant(float* a, float* b) {
  int t = threadIdx.x;
  float* written;
  asm("mov.u64 %0, table;" : "=l"(written));  // as cudaGetSymbolAddress would tell it
  written[t] = a[t];
  __syncthreads();
  b[64 + t] = table[63 - t];  // BAD
}
KERNEL beyond_its_row(float* a, float* b) {
  int i = blockIdx.x * 64 + threadIdx.x;
  for (int j = 0; j < 4; ++j) b[i + 100 * j] = a[i + j];  // BAD
}

// --- warp operations

KERNEL mask_without_caller(float* a, float* b) {
  int t = threadIdx.x;
  b[t] = __shfl_xor_sync(0x0000ffffu, a[t], 1);  // BAD
}
KERNEL mask_beyond_the_block(float* a, float* b) {
  int t = threadIdx.x;
  b[t] = __shfl_xor_sync(FULL, a[t], 1);  // BAD
}
KERNEL value_of_an_absent_lane(float* a, float* b) {
  int t = threadIdx.x;
  float v = a[t];
  if (t < 24) b[t] = __shfl_down_sync(0x00ffffffu, v, 8);  // BAD
}
KERNEL shuffle_in_a_branch(float* a, float* b) {
  int t = threadIdx.x;
  float v = a[t];
  if (t < 16) v += __shfl_xor_sync(FULL, v, 8);  // BAD
  __syncwarp();
  b[t] = v;
}
KERNEL tiles_of_a_warp(int* a, int* b) {
  int t = threadIdx.x;
  unsigned own = 0xffu << t / 8 * 8;
  b[t] = __any_sync(own, a[t] == 3) + __reduce_add_sync(own, a[t]) + __ballot_sync(own, 1);
}

// --- asynchronous copies

#include <cuda_pipeline.h>
KERNEL copy_not_committed(float* a, float* b) {
  __shared__ float s[64];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&s[t], &a[t], 4);  // BAD
  __pipeline_wait_prior(0);
  __syncthreads();
  b[t] = s[63 - t];  // BAD
}
KERNEL copy_not_waited_for(float* a, float* b) {
  __shared__ float s[64];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&s[t], &a[t], 4);  // BAD
  __pipeline_commit();
  __syncthreads();
  b[t] = s[63 - t];  // BAD
}

// --- lanes of a warp

KERNEL shifts_in_step(float* a, float* b) {
  const int t = threadIdx.x;
  const float next = a[(t + 1) % 32];
  a[t] = next;  // BAD
}
KERNEL all_look_and_one_writes(float* a, float* b) {
  const float seen = a[7];
  if (threadIdx.x == 3) a[7] = seen + 1;  // BAD
  b[threadIdx.x] = seen;
}
KERNEL shifts_behind_syncwarp(float* a, float* b) {
  const int t = threadIdx.x;
  const float next = a[(t + 1) % 32];
  __syncwarp();
  a[t] = next;
  if (t == 0) a[40] = a[40] + a[32];
  a[t] = a[t] * 2;
  __syncwarp();
  const float seen = a[7];
  __syncwarp();
  if (t == 3) a[7] = seen + 1;
}

// One lane of each warp arrives at an mbarrier, in the name of all.
#define ONE_LANE_ARRIVES(ORDER)                                                              \
  __shared__ float s[64];                                                                    \
  __shared__ unsigned long long arrivals;                                                    \
  const int t = threadIdx.x;                                                                 \
  const unsigned at = unsigned(__cvta_generic_to_shared(&arrivals));                         \
  if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 2;" ::"r"(at));                   \
  __syncthreads();                                                                           \
  s[t] = a[t];                                                                               \
  ORDER;                                                                                     \
  if (t % 32 == 0)                                                                           \
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(at) : "memory"); \
  asm volatile(                                                                              \
      "{ .reg .pred p; W: mbarrier.test_wait.parity.shared.b64 p, [%0], 0; @!p bra W; }" ::"r"( \
          at)                                                                                \
      : "memory");                                                                           \
  b[t] = s[t ^ 32]
KERNEL one_lane_arrives(float* a, float* b) { ONE_LANE_ARRIVES(__syncwarp()); }
KERNEL one_lane_arrives_too_early(float* a, float* b) {
  ONE_LANE_ARRIVES();  // BAD
}

// Waits and meetings of some lanes alone.
__device__ unsigned mbarrier(unsigned long long* b, int arrivals) {
  const unsigned at = unsigned(__cvta_generic_to_shared(b));
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory");
  __syncthreads();
  return at;
}
__device__ void arrive(unsigned at) {
  asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(at) : "memory");
}
__device__ void wait_first(unsigned at) {
  int over = 0;
  while (!over)
    asm volatile(
        "{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.b32 %0, 1, 0, p; }"
        : "=r"(over)
        : "r"(at)
        : "memory");
}
#define ONE_LANE_WAITS(ORDER)                  \
  __shared__ float s[64];                      \
  __shared__ unsigned long long b1;            \
  const int t = threadIdx.x;                   \
  const unsigned at = mbarrier(&b1, 64);       \
  s[t] = a[t];                                 \
  arrive(at);                                  \
  if (t % 32 == 0) wait_first(at);             \
  ORDER;                                       \
  b[t] = s[t ^ 32]
KERNEL one_lane_waits(float* a, float* b) { ONE_LANE_WAITS(__syncwarp()); }
KERNEL one_lane_waits_for_all(float* a, float* b) {
  ONE_LANE_WAITS();  // BAD
}
KERNEL all_lanes_wait_apart(float* a, float* b) {
  __shared__ float s[64];
  __shared__ unsigned long long b1;
  const int t = threadIdx.x;
  const unsigned at = mbarrier(&b1, 64);
  s[t] = a[t];
  arrive(at);
  if (t % 32 == 0) {
    wait_first(at);
    b[t] = s[t ^ 33];
  } else {
    wait_first(at);
    b[t] = s[t ^ 31];
  }
}
KERNEL lanes_meet_at_an_mbarrier(float* a, float* b) {
  __shared__ float s[32];
  __shared__ unsigned long long b1;
  const int t = threadIdx.x;
  const unsigned at = mbarrier(&b1, 32);
  s[t] = a[t];
  arrive(at);
  wait_first(at);
  b[t] = s[31 - t];
}
KERNEL lanes_arrive_and_nobody_waits(float* a, float* b) {
  __shared__ float s[32];
  __shared__ unsigned long long b1;
  const int t = threadIdx.x;
  const unsigned at = mbarrier(&b1, 32);
  s[t] = a[t];
  arrive(at);
  b[t] = s[31 - t];  // BAD
}
KERNEL one_lane_arrives_at_its_warps_own(float* a, float* b) {
  __shared__ float s[32];
  __shared__ unsigned long long b1;
  const int t = threadIdx.x;
  const unsigned at = mbarrier(&b1, 1);
  s[t] = a[t];
  if (t == 0) arrive(at);
  wait_first(at);
  b[t] = s[31 - t];  // BAD
}
#define ONE_LANE_WAITS_FOR_A_FLAG(ORDER)        \
  __shared__ float s[32];                      \
  __shared__ int flag;                         \
  const int t = threadIdx.x;                   \
  if (t == 0) flag = 0;                        \
  __syncthreads();                             \
  if (t < 32) {                                \
    s[t] = a[t];                               \
    __syncwarp();                              \
    __threadfence_block();                     \
    if (t == 0) atomicExch(&flag, 1);          \
  } else {                                     \
    int set = t != 32;                          \
    while (!set)                                \
      asm volatile("ld.acquire.cta.b32 %0, [%1];" : "=r"(set) : "l"(&flag) : "memory"); \
    ORDER;                                     \
    b[t] = s[63 - t];                          \
  }
KERNEL one_lane_waits_for_a_flag(float* a, float* b) { ONE_LANE_WAITS_FOR_A_FLAG(__syncwarp()) }
KERNEL one_lane_waits_for_a_flag_of_all(float* a, float* b) {
  ONE_LANE_WAITS_FOR_A_FLAG()  // BAD
}
#define RESETS_ITS_FLAG(THREAD)              \
  const int t = threadIdx.x;                \
  if (blockIdx.x == 0) {                    \
    a[t] += 1;                              \
    __syncthreads();                        \
    if (t == 0) {                           \
      __threadfence();                      \
      atomicAdd(&flags[1], 1);              \
    }                                       \
  } else {                                  \
    if (t == 0) {                           \
      while (*(volatile int*)&flags[1] == 0) {} \
      __threadfence();                      \
    }                                       \
    __syncthreads();                        \
    b[t] = a[63 - t];                       \
    if (THREAD) flags[1] = 0;               \
  }
KERNEL resets_its_flag(float* a, float* b) { RESETS_ITS_FLAG(t == 0) }
KERNEL resets_what_it_acquired(float* a, float* b) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    if (t == 0) atomicAdd(&flags[1], 1);
  } else if (t == 0) {
    int set = 0;
    while (!set) asm volatile("ld.acquire.gpu.b32 %0, [%1];" : "=r"(set) : "l"(&flags[1]) : "memory");
    flags[1] = 0;
  }
}
KERNEL changes_what_it_has_read(float* a, float* b) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    if (t == 0) atomicAdd(&flags[1], 1);  // BAD
  } else if (t == 0) {
    int seen;
    asm volatile("ld.relaxed.gpu.b32 %0, [%1];" : "=r"(seen) : "l"(&flags[1]) : "memory");
    flags[1] = seen + 1;  // BAD
  }
}
KERNEL resets_a_flag_unseen(float* a, float* b) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    if (t == 0) atomicAdd(&flags[1], 1);  // BAD
  } else {
    if (t == 0) flags[1] = 0;  // BAD
  }
}
KERNEL polls_behind_an_old_fence(float* a, float* b) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    a[t] += 1;  // BAD
    __syncthreads();
    __threadfence();
    if (t == 0) atomicExch(&flags[0], 1);
  } else {
    __threadfence();
    if (t == 0) {
      while (atomicAdd(&flags[0], 0) == 0) {}
    }
    __syncthreads();
    b[t] = a[63 - t];  // BAD
  }
}
KERNEL halves_of_a_warp(float* a, float* b) {
  __shared__ float s[32];
  const int t = threadIdx.x;
  s[t] = a[t];
  __syncwarp(0xffffu << (t & 16));
  const float half = s[t ^ 15];
  __syncwarp(0xffu << (t & 24));
  b[t] = half + s[t ^ 15];
}
KERNEL halves_of_a_warp_read_each_other(float* a, float* b) {
  __shared__ float s[32];
  const int t = threadIdx.x;
  s[t] = a[t];
  __syncwarp(0xffffu << (t & 16));
  b[t] = s[31 - t];  // BAD
}
KERNEL sides_of_a_branch_meet(float* a, float* b) {
  __shared__ float s[16];
  const int t = threadIdx.x;
  if (t >= 16) {
    s[t - 16] = a[t];
    __syncwarp();
  } else {
    b[t + 32] = a[t];
    __syncwarp();
    b[t] = s[t];
  }
  __syncwarp();
  if (t >= 16) b[t] = b[t + 16];
}
KERNEL sides_of_a_branch_exchange(float* a, float* b) {
  const int t = threadIdx.x;
  float mine = a[t], other;
  if (t < 16) {
    other = __shfl_xor_sync(~0u, mine, 16);
  } else if (t < 24) {
    mine = 2 * mine;
    other = __shfl_xor_sync(~0u, mine, 24);
  } else {
    other = -__shfl_xor_sync(~0u, -mine, 16);
  }
  b[t] = other;
}
KERNEL first_side_leaves_itself_out(float* a, float* b) {
  const int t = threadIdx.x;
  float other;
  if (t >= 16) {
    other = __shfl_xor_sync(0x1ffffu, a[t], 8);  // BAD
  } else {
    other = -__shfl_xor_sync(0x1ffffu, a[t] + 1, 8);
  }
  b[t] = other;
}
KERNEL second_side_leaves_itself_out(float* a, float* b) {
  const int t = threadIdx.x;
  float other;
  if (t < 16) {
    other = -__shfl_xor_sync(0x1ffffu, a[t] + 1, 8);
  } else {
    other = __shfl_xor_sync(0x1ffffu, a[t], 8);  // BAD
  }
  b[t] = other;
}
KERNEL sides_of_a_branch_meet_and_write(float* a, float* b) {
  __shared__ float s[16];
  const int t = threadIdx.x;
  if (t >= 16) {
    __syncwarp();
    s[t - 16] = a[t];  // BAD
  } else {
    __syncwarp();
    b[t] = s[t];  // BAD
  }
}
KERNEL halves_of_warps_arrive(float* a, float* b) {
  __shared__ float s[64];
  __shared__ unsigned long long b1;
  const int t = threadIdx.x;
  const unsigned at = mbarrier(&b1, 4);
  s[t] = a[t];
  __syncwarp(0xffffu << (t & 16));
  if (t % 16 == 0) arrive(at);
  wait_first(at);
  b[t] = s[63 - t];
}
KERNEL pairs_hand_on(float* a, float* b) {
  __shared__ float s[32];
  const int t = threadIdx.x;
  s[t] = a[t];
  __syncwarp(3u << (t & 30));
  __syncwarp(15u << (t & 28));
  b[t] = s[t ^ 3];
}
KERNEL lanes_wait_for_each_other(float* a, float* b) {
  __shared__ float s[16];
  __shared__ int set[16];
  const int t = threadIdx.x;
  if (t < 16) set[t] = 0;
  __syncwarp();
  if (t >= 16) {
    s[t - 16] = a[t];
    __threadfence_block();
    atomicExch(&set[t - 16], 1);
  } else {
    while (atomicAdd(&set[t], 0) == 0) {}
    __threadfence_block();
    b[t] = s[t];
  }
}
KERNEL lanes_take_a_lock_in_turn(float* a, float* b) {
  __shared__ int lock;
  __shared__ float total;
  const int t = threadIdx.x;
  if (t == 0) lock = 0, total = 0;
  __syncthreads();
  while (atomicCAS(&lock, 0, 1) != 0) {}
  __threadfence_block();
  *(volatile float*)&total = *(volatile float*)&total + a[t];
  __threadfence_block();
  atomicExch(&lock, 0);
  __syncthreads();
  b[t] = total;
}
KERNEL lanes_wait_in_chains_and_count(float* a, float* b) {
  __shared__ volatile int set[32];
  const int t = threadIdx.x;
  set[t] = t % 4 == 0;
  __syncwarp();
  unsigned looks = 0;
  while (!set[t]) ++looks;
  b[t] = a[t] + (looks == ~0u);
  if (t % 4 != 3) set[t + 1] = 1;
}
KERNEL lanes_wait_in_a_ring(float* a, float* b) {
  __shared__ int set[32];
  const int t = threadIdx.x;
  set[t] = 0;
  __syncwarp();
  if (t < 16) {
    while (atomicAdd(&set[t + 16], 0) == 0) {}  // BAD
    atomicExch(&set[t], 1);
  } else {
    while (atomicAdd(&set[t - 16], 0) == 0) {}  // BAD
    atomicExch(&set[t], 1);
  }
  b[t] = a[t];
}
KERNEL writes_over_its_mbarrier(float* a, float* b) {
  __shared__ __align__(8) float s[64];
  const int t = threadIdx.x;
  const unsigned at = mbarrier((unsigned long long*)s, 64);
  s[t] = a[t];
  __syncthreads();
  asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(at));  // BAD
  b[t] = s[63 - t];
}
// Arrivals by noComplete may not be a phase's last ones.
#define ARRIVES_TWICE(ARRIVALS, FORM, LAST)                                              \
  __shared__ float s[64];                                                                \
  __shared__ unsigned long long b1;                                                      \
  const int t = threadIdx.x;                                                             \
  const unsigned at = mbarrier(&b1, ARRIVALS);                                           \
  s[t] = a[t];                                                                           \
  asm volatile("{ .reg .b64 s; mbarrier." FORM ".b64 s, [%0], 2; }" ::"r"(at) : "memory"); \
  LAST;                                                                                  \
  wait_first(at);                                                                        \
  b[t] = s[63 - t]
KERNEL arrives_in_two_steps(float* a, float* b) {
  ARRIVES_TWICE(192, "arrive.noComplete.shared", arrive(at));
}
KERNEL drops_in_two_steps(float* a, float* b) {
  ARRIVES_TWICE(192, "arrive_drop.noComplete.release.cta.shared::cta", arrive(at));
}
KERNEL completes_by_no_complete(float* a, float* b) {
  ARRIVES_TWICE(128, "arrive.noComplete.shared", );  // BAD
}
KERNEL completes_by_no_complete_dropping(float* a, float* b) {
  ARRIVES_TWICE(128, "arrive_drop.noComplete.shared", );  // BAD
}
#define COPIES_ARRIVE(ORDER)                                                              \
  __shared__ float s[64];                                                                 \
  __shared__ unsigned long long b1;                                                       \
  const int t = threadIdx.x;                                                              \
  const unsigned at = mbarrier(&b1, 64), to = unsigned(__cvta_generic_to_shared(&s[t]));  \
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(a + t) : "memory"); \
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at) : "memory");   \
  ORDER;                                                                                  \
  b[t] = s[63 - t]
KERNEL copies_arrive(float* a, float* b) { COPIES_ARRIVE(wait_first(at)); }
KERNEL copies_arrive_and_nobody_waits(float* a, float* b) {
  COPIES_ARRIVE(__syncthreads());  // BAD
}
#define COPIES_ONE                                                                            \
  __shared__ float s[64];                                                                     \
  const int t = threadIdx.x;                                                                  \
  const unsigned to = unsigned(__cvta_generic_to_shared(&s[t]));                              \
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(a + t) : "memory")
#define WAIT_FOR_COPIES asm volatile("cp.async.wait_all;" ::: "memory")
KERNEL overwrites_what_it_has_copied(float* a, float* b) {
  COPIES_ONE;
  WAIT_FOR_COPIES;
  a[t] = 0;
  b[t] = s[t];
}
KERNEL overwrites_what_it_copies(float* a, float* b) {
  COPIES_ONE;
  a[t] = 0;  // BAD
  WAIT_FOR_COPIES;
  b[t] = s[t];
}
KERNEL overwrites_what_others_copy(float* a, float* b) {
  COPIES_ONE;
  __syncthreads();
  a[63 - t] = 0;  // BAD
  WAIT_FOR_COPIES;
  b[t] = s[t];
}
KERNEL overwrites_what_copies_have_read(float* a, float* b) {
  COPIES_ARRIVE(wait_first(at); a[63 - t] = 0);
}
KERNEL overwrites_before_the_copies_arrive(float* a, float* b) {
  COPIES_ARRIVE(a[t] = 0; wait_first(at));  // BAD
}

// --- values

KERNEL sum_never_set(float* a, float* b, int n) {
  float sum;
  for (int i = 0; i < n; ++i) sum += a[i];  // BAD
  b[threadIdx.x] = sum;
}
KERNEL set_where_it_is_used(float* a, float* b, int n) {
  float next;
  float sum = 0;
  if (n > 1) next = a[0];
  for (int i = 1; i < n; ++i) {
    sum += next;
    if (i + 1 < n) next = a[i];
  }
  b[threadIdx.x] = sum;
}
__device__ __noinline__ int deep(int n) {
  int own[16];
  for (int i = 0; i < 16; ++i) own[i] = n * i;
  return n ? own[deep(n - 1) & 15] : 0;  // BAD
}
KERNEL recursion(int* a, int* b, int n) { b[threadIdx.x] = deep(n); }
