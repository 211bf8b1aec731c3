// Kernels that change words with others: wrong ones, whose results depend on who comes first where
// lines say BAD, and right ones. x and y have 1024 elements, y of zeros; a block has 64 threads.
#include <cuda/atomic>
#define KERNEL extern "C" __global__ void
#define IN_BLOCK const int t = threadIdx.x
#define IN_GRID const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t
using Word = cuda::atomic_ref<int, cuda::thread_scope_device>;
using Value = cuda::atomic_ref<float, cuda::thread_scope_device>;
using Tile = cuda::atomic_ref<unsigned long long, cuda::thread_scope_device>;
constexpr auto RELAXED = cuda::memory_order_relaxed;
__device__ int lock, tickets, serving, arrived, flags[64], seen[64];
__device__ float shared_sum, data[1024];
__device__ unsigned long long tiles[64];

// --- wrong: changes are lost

KERNEL relaxed_sum(const float* x, float* y) {
  IN_GRID;
  float v;
  asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(v) : "l"(y + t) : "memory");  // BAD
  asm volatile("st.relaxed.gpu.global.f32 [%0], %1;" ::"l"(y + t), "f"(v + x[i]) : "memory");
}
KERNEL loads_and_stores(const float* x, float* y) {
  IN_GRID;
  Value word(y[t]);
  word.store(word.load() + x[i]);  // BAD
}
KERNEL swaps_once(const float* x, float* y) {
  IN_GRID;
  int *word = (int*)y + t, old = *word;  // BAD
  atomicCAS(word, old, __float_as_int(__int_as_float(old) + x[i]));
}
KERNEL swaps_once_relaxed(const float* x, float* y) {
  IN_GRID;
  Word word(((int*)y)[t]);
  int old = word.load(RELAXED);  // BAD
  word.compare_exchange_strong(old, __float_as_int(__int_as_float(old) + x[i]), RELAXED);
}
KERNEL exchanges(const float* x, float* y) {
  IN_GRID;
  const float old = atomicAdd(y + t, 0.0f);  // BAD
  atomicExch(y + t, old + x[i]);
}
KERNEL volatile_beside_a_wait(const float* x, float* y) {
  IN_GRID;
  volatile float* word = y + t;
  while (*word < -1) {}  // never
  *word = *word + x[i];  // BAD
}
KERNEL keeps_the_largest(const float* x, float* y) {
  IN_GRID;
  Value word(y[t]);
  if (word.load() < x[i]) word.store(x[i]);  // BAD
}
// --- wrong: a fence does not wait
KERNEL divides_by_a_look(const float* x, float* y) {
  IN_GRID;
  atomicAdd(&shared_sum, x[i]);
  __threadfence();
  y[i] = x[i] / shared_sum;  // BAD
}
KERNEL divides_by_volatile(const float* x, float* y) {
  IN_GRID;
  atomicAdd(&shared_sum, x[i]);
  __threadfence();
  y[i] = x[i] / *(volatile float*)&shared_sum;  // BAD
}
KERNEL divides_by_atomic(const float* x, float* y) {
  IN_GRID;
  atomicAdd(&shared_sum, x[i]);
  __threadfence();
  y[i] = x[i] / atomicAdd(&shared_sum, 0.0f);  // BAD
}
// --- wrong: no fence between data and flag
KERNEL relaxed_flag(const float* x, float* y) {
  IN_BLOCK;
  Word flag(flags[t]);
  Value value(data[t]);
  if (blockIdx.x == 0) {
    value.store(x[t], RELAXED);
    flag.store(1, RELAXED);
  } else {
    y[64 * blockIdx.x + t] = flag.load(RELAXED) ? value.load(RELAXED) : x[t];  // BAD
  }
}
KERNEL exchanged_flag(const float* x, float* y) {
  IN_BLOCK;
  if (blockIdx.x == 0) {
    atomicExch(&data[t], x[t]);
    atomicExch(&flags[t], 1);
  } else {
    float value = x[t];
    if (*(volatile int*)&flags[t]) value = *(volatile float*)&data[t];  // BAD
    y[64 * blockIdx.x + t] = value;
  }
}

// --- right

KERNEL swaps_until_it_succeeds(const float* x, float* y) {
  IN_GRID;
  int *word = (int*)y + t, old = *word, was;
  do {
    was = old;
    old = atomicCAS(word, was, __float_as_int(__int_as_float(was) + x[i]));
  } while (old != was);
}
KERNEL exchanges_until_it_succeeds(const float* x, float* y) {
  IN_GRID;
  Value word(y[t]);
  float old = word.load(RELAXED);
  while (!word.compare_exchange_weak(old, old + x[i], RELAXED)) {}
}
KERNEL largest_by_swaps(const float* x, float* y) {
  IN_GRID;
  int *word = (int*)y + t, mine = __float_as_int(x[i]), old = *(volatile int*)word;
  while (old < mine) {
    const int was = old;
    old = atomicCAS(word, was, mine);
    if (old == was) break;
  }
}
KERNEL sets_once(const float* x, float* y) {
  IN_BLOCK;
  atomicCAS((int*)y + t, 0, 7);
}
KERNEL tests_and_sets_once(const float* x, float* y) {
  IN_BLOCK;
  if (*(volatile int*)&flags[t] == 0 && atomicCAS(&flags[t], 0, 1) == 0) y[t] = 1;
}
KERNEL sets_what_others_set(const float* x, float* y) {
  Word flag(*(int*)y);
  if (!flag.load(RELAXED)) flag.store(1, RELAXED);
}
KERNEL unlocks_by_a_swap(const float* x, float* y) {
  if (threadIdx.x) return;
  while (atomicCAS(&lock, 0, 1)) {}
  __threadfence();
  y[0] += x[blockIdx.x];
  __threadfence();
  atomicCAS(&lock, 1, 0);
}
KERNEL volatile_in_a_lock(const float* x, float* y) {
  if (threadIdx.x) return;
  while (atomicCAS(&lock, 0, 1)) {}
  __threadfence();
  *(volatile float*)y = *(volatile float*)y + x[blockIdx.x];
  __threadfence();
  atomicExch(&lock, 0);
}
KERNEL waits_for_its_ticket(const float* x, float* y) {
  if (threadIdx.x) return;
  const int mine = atomicAdd(&tickets, 1);
  while (*(volatile int*)&serving != mine) {}
  __threadfence();
  y[0] += x[blockIdx.x];
  __threadfence();
  *(volatile int*)&serving = mine + 1;
}
KERNEL last_block_resets(const float* x, float* y) {
  IN_GRID;
  __shared__ bool last;
  data[i] = x[i];
  __threadfence();
  __syncthreads();
  if (t == 0) last = atomicAdd(&arrived, 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  float sum = 0;
  for (int b = 0; b < gridDim.x; ++b) sum += ((volatile float*)data)[64 * b + t];
  y[t] = sum;
  if (t == 0) arrived = 0;
}
KERNEL last_block_takes_the_sum(const float* x, float* y) {
  IN_GRID;
  Value sum(shared_sum);
  sum.fetch_add(x[i], RELAXED);
  __syncthreads();
  if (t == 0 && Word(arrived).fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1)
    y[0] = sum.load(RELAXED);
}
KERNEL looks_at_a_marked_sum(const float* x, float* y) {
  IN_BLOCK;
  const int own = int(100 * x[t]) + 1;
  volatile int* const word = (volatile int*)&flags[t];
  if (blockIdx.x == 0) {
    *word = 1 << 30 | own;
    return;
  }
  int seen;
  do {
    __threadfence_block();
    seen = *word;
  } while (!seen);
  y[64 * blockIdx.x + t] = own + (seen & ~(1 << 30));
}
KERNEL looks_back(const float* x, float* y) {
  if (threadIdx.x) return;
  const int mine = atomicAdd(&tickets, 1), own = int(100 * x[mine]) + 1;
  unsigned sum = own;
  if (mine) {
    Tile(tiles[mine]).store(1ull << 32 | own, RELAXED);
    for (int before = mine - 1;; --before) {
      unsigned long long word;
      do word = Tile(tiles[before]).load(RELAXED);
      while (!(word >> 32));
      sum += unsigned(word);
      if (word >> 32 == 2) break;
    }
  }
  Tile(tiles[mine]).store(2ull << 32 | sum, RELAXED);
  y[mine] = sum;
}
KERNEL fenced_flag(const float* x, float* y) {
  IN_BLOCK;
  Word flag(flags[t]);
  Value value(data[t]);
  if (blockIdx.x == 0) {
    value.store(x[t], RELAXED);
    __threadfence();
    flag.store(1, RELAXED);
  } else if (flag.load(RELAXED)) {
    __threadfence();
    y[64 * blockIdx.x + t] = value.load(RELAXED);
  } else {
    y[64 * blockIdx.x + t] = x[t];
  }
}
KERNEL one_at_most(const float* x, float* y) {
  if (threadIdx.x || blockIdx.x > 1) return;
  Word(flags[blockIdx.x]).store(1);
  if (Word(flags[1 - blockIdx.x]).load() == 0 && atomicAdd(&arrived, 1)) y[0] = 1;
}
KERNEL takes_work(const float* x, float* y) {
  IN_BLOCK;
  __shared__ int task;
  for (;;) {
    if (t == 0) task = atomicAdd(&tickets, 1);
    __syncthreads();
    const int mine = task;
    __syncthreads();
    if (mine >= 16) break;
    y[64 * mine + t] = 2 * x[64 * mine + t];
  }
}
KERNEL appends_what_is_new(const float* x, float* y) {
  IN_GRID;
  const int v = int(60 * x[i]);
  if (*(volatile int*)&seen[v] == 0 && atomicCAS(&seen[v], 0, 1) == 0)
    y[64 + atomicAdd((int*)y, 1)] = v;
}
KERNEL takes_no_place_at_times(const float* x, float* y) {
  if (threadIdx.x) return;
  const int wanted = int(60 * x[blockIdx.x]) % 2;
  const int at = atomicAdd(&tickets, wanted);
  if (wanted) y[64 + at] = 100 * blockIdx.x + at;
}
// --- right, and a warning: nobody minds a lost change
KERNEL swaps_at_best(const float* x, float* y) {
  IN_GRID;
  const int old = ((volatile int*)y)[t];
  if (old != 7) atomicCAS((int*)y + t, old, 7);
}
