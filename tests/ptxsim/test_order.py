"""What orders accesses and what does not: barriers, exits, flags between blocks, warp operations.

All kernels are compiled at once; each is right, or wrong in one way.
"""

from __future__ import annotations

import numpy as np
import pytest

from ptxsim.findings.finding import Event, Severity
from ptxsim.outcome import SimOutcome
from ptxsim.records import Allocation, Launch, Plan, Size
from ptxsim.sampling import Sampler
from tests.support.english import sentence
from tests.support.kernels import compiled, engine, run

KERNELS = r"""
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
  if (t >= 64) { b[t] = s[t]; return; }
  __syncthreads();
  s[t + 64] = 1;
  b[t] = s[t];
}
KERNEL exits_without_a_barrier(float* a, float* b) {
  __shared__ float s[128];
  int t = threadIdx.x;
  s[t] = a[t];  // BAD
  if (t >= 64) { b[t] = s[t]; return; }
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
#define SUM_OF_STEPS                              \
  __shared__ float s[2][64];                      \
  __shared__ float extra;                         \
  int t = threadIdx.x;                            \
  s[0][t] = a[t];                                 \
  s[1][t] = a[64 + t];                            \
  extra = 0;                                      \
  __syncthreads();                                \
  float sum = 0, next = s[0][63 - t];             \
  _Pragma("unroll 1") for (int k = 0; k < n; ++k) { \
    float now = next;                             \
    __syncthreads();                              \
    next = *(volatile float*)&s[(k + 1) & 1][63 - t]; \
    sum += now;                                   \
  }                                               \
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
  float v = a[(t + 64) % n];
  __syncthreads();
  a[t] = v + 1;  // BAD
}
KERNEL fence_but_no_flag(float* a, float* b) {
  int t = threadIdx.x;
  b[blockIdx.x * 64 + t] = a[t];
  __threadfence();
  __syncthreads();
  if (blockIdx.x == gridDim.x - 1)
    a[t] = b[t] + 1;  // BAD
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
    if (t == 0) while (atomicAdd(&flags[0], 0) == 0) {}
    __threadfence();
    __syncthreads();
    b[64 + t] = b[t];  // BAD
  }
}
KERNEL flags_in_a_chain(float* a, float* b) {
  int t = threadIdx.x;
  volatile int* flag = flags;
  if (t == 0 && blockIdx.x) while (flag[blockIdx.x - 1] == 0) {}
  __syncthreads();
  b[t] = blockIdx.x ? b[t] + a[t] : a[t];
  __threadfence();
  __syncthreads();
  if (t == 0) flag[blockIdx.x] = 1;
}
KERNEL no_barrier_behind_the_flag(float* a, float* b) {
  int t = threadIdx.x;
  volatile int* flag = flags;
  if (t == 0 && blockIdx.x) while (flag[blockIdx.x - 1] == 0) {}
  b[t] = blockIdx.x ? b[t] + a[t] : a[t];  // BAD
  __threadfence();
  __syncthreads();
  if (t == 0) flag[blockIdx.x] = 1;
}
KERNEL later_blocks_first(float* a, float* b) {
  int t = threadIdx.x;
  volatile int* flag = flags;
  if (t == 0 && blockIdx.x + 1 < gridDim.x) while (flag[blockIdx.x + 1] == 0) {}
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

// --- values

KERNEL sum_never_set(float* a, float* b, int n) {
  float sum;
  for (int i = 0; i < n; ++i)
    sum += a[i];  // BAD
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
"""


def watch(
    kernel: str,
    blocks: int,
    threads: int,
    scalars: tuple[int, ...] = (),
    resident: tuple[int, ...] = (),
    stack: int = 1024,
    cooperative: bool = False,
) -> tuple[SimOutcome, np.ndarray, np.ndarray]:
    a = np.arange(64 * 256, dtype=np.float32)
    b = np.zeros(64 * 256, np.float32)
    if kernel == "tiles_of_a_warp":
        a, b = a.astype(np.int32), b.astype(np.int32)
    grid, block = (blocks, 1, 1), (threads, 1, 1)
    outcome = run(
        KERNELS,
        [a, b],
        scalars,
        grid,
        block,
        kernel=kernel,
        resident=resident,
        stack=stack,
        cooperative=cooperative,
    )
    return outcome, a, b


def bad_lines(kernel: str) -> set[int]:
    """Of ``kernel`` and the functions between it and the kernel before."""
    lines, found = KERNELS.splitlines(), set()
    for number, text in enumerate(lines, 1):
        if text.startswith("KERNEL ") and not text.startswith(f"KERNEL {kernel}("):
            if f"KERNEL {kernel}(" in "\n".join(lines[:number]):
                break
            found = set()
        if text.endswith("// BAD"):
            found.add(number)
    return found


RIGHT = {
    "exits_before_a_barrier": (1, 128),
    "one_barrier_in_a_loop": (1, 36, (9,)),
    "flag_in_shared_memory": (1, 64),
    "last_block_adds": (8, 64),
    "flags_in_a_chain": (8, 64),
    "later_blocks_first": (200, 64),
    "grid_barriers": (132, 64),
    "tiles_of_a_warp": (1, 32),
    "tiles_of_four_warps": (1, 256),
    "set_where_it_is_used": (1, 32, (9,)),
    "recursion": (1, 32, (11,)),
}


@pytest.mark.parametrize("kernel", RIGHT)
def test_right_kernels_are_not_accused(kernel: str) -> None:
    blocks, threads, *scalars = RIGHT[kernel]
    outcome, a, b = watch(kernel, blocks, threads, *scalars)
    assert outcome.findings == () and outcome.stopped is None
    match kernel:
        case "last_block_adds":
            assert b[:64].tolist() == (8 * a[:64]).tolist()
        case "flags_in_a_chain" | "later_blocks_first":
            assert b[:64].tolist() == (blocks * a[:64]).tolist()
        case "grid_barriers":
            t = np.arange(blocks * 64)
            assert a[: blocks * 64].tolist() == ((t + 4 * 64) % (blocks * 64) + 4).tolist()
        case "tiles_of_four_warps":
            tiles = a[:256].reshape(2, 128)
            assert b[:256].tolist() == np.repeat(tiles.sum(axis=1) - tiles[:, 0], 128).tolist()
        case "tiles_of_a_warp":
            tile = np.arange(32) // 8
            sums = a[:32].reshape(4, 8).sum(axis=1)[tile] + (tile == 0)
            assert (b[:32].view(np.uint32) == sums + (0xFF << 8 * tile)).all()


WRONG = {
    "exits_without_a_barrier": (1, 128, Event.RACE, "in shared memory"),
    "whole_warps_at_two_barriers": (1, 64, Event.BARRIERS_MIXED, "every GPU of today"),
    "half_a_warp_at_another_barrier": (1, 64, Event.DIVERGENT_BARRIER, "of a warp reach"),
    "writes_what_others_read": (3, 64, Event.RACE, "between blocks"),
    "fence_but_no_flag": (3, 64, Event.RACE, "between blocks"),
    "no_barrier_ahead_of_the_count": (3, 64, Event.RACE, "between blocks"),
    "no_fence_ahead_of_the_flag": (2, 64, Event.RACE, "between blocks"),
    "no_barrier_behind_the_flag": (3, 64, Event.RACE, "between blocks"),
    "waits_for_nobody": (3, 64, Event.WAITS_FOR_EVER, "no thread writes any more"),
    "mask_without_caller": (1, 32, Event.MASK_WITHOUT_CALLER, "0x0000ffff does not name"),
    "mask_beyond_the_block": (1, 16, Event.MASK_BEYOND_BLOCK, "0xffffffff"),
    "value_of_an_absent_lane": (1, 32, Event.ABSENT_LANE, "takes no part"),
    "shuffle_in_a_branch": (1, 32, Event.DIVERGENT_WARP_OP, "lanes 16-31 do not"),
    "copy_not_committed": (1, 64, Event.COPY_NOT_COMMITTED, "__pipeline_commit()"),
    "copy_not_waited_for": (1, 64, Event.ASYNC_RACE, "not waited for"),
    "last_fetch_unused": (1, 64, Event.UNUSED_RACE, "nothing uses what was read", (4,)),
    "last_fetch_stored": (1, 64, Event.RACE, "no __syncthreads()", (4,)),
    "last_fetch_votes": (1, 64, Event.RACE, "no __syncthreads()", (4,)),
    "last_fetch_added": (1, 64, Event.RACE, "no __syncthreads()", (4,)),
    "last_fetch_kept": (1, 64, Event.RACE, "no __syncthreads()", (4,)),
    "last_fetch_returns": (1, 64, Event.RACE, "no __syncthreads()", (4,)),
    "sum_never_set": (1, 32, Event.NEVER_SET, "no value yet", (9,)),
    "recursion": (1, 32, Event.STACK_OVERFLOW, "stack of 1024 bytes", (40,)),
}


@pytest.mark.parametrize("kernel", WRONG)
def test_wrong_kernels_are_told_what_is_wrong(kernel: str) -> None:
    blocks, threads, event, says, *scalars = WRONG[kernel]
    outcome, _, _ = watch(kernel, blocks, threads, *scalars)
    found = [f for f in outcome.findings if f.event is event]
    assert found, outcome.findings
    assert says in sentence(found[0])
    assert found[0].place is not None and found[0].place.line in bad_lines(kernel)
    legal = event in (Event.BARRIERS_MIXED, Event.MASK_BEYOND_BLOCK, Event.UNUSED_RACE)
    assert (found[0].severity is Severity.WARNING) == legal
    if legal:
        assert len(outcome.findings) == 1


def test_blocks_that_wait_for_each_other_must_all_fit() -> None:
    outcome, _, _ = watch("grid_barriers", 200, 64, resident=(132,))
    (found,) = outcome.findings
    assert found.event is Event.NOT_ALL_RESIDENT and outcome.stopped == "deadlock"
    assert "132 blocks fit on the GPU at the same time, 200 were launched" in sentence(found)
    assert found.place is not None and found.place.line in bad_lines("grid_barriers")


def test_grid_sync() -> None:
    outcome, a, _ = watch("grid_syncs", 132, 64, resident=(132,), cooperative=True)
    assert outcome.findings == () and outcome.stopped is None
    t = np.arange(132 * 64)
    assert a[: 132 * 64].tolist() == ((t + 4 * 64) % (132 * 64) + 4).tolist()


def test_a_grid_sync_that_is_missing() -> None:
    outcome, _, _ = watch("one_grid_sync_too_few", 3, 64, cooperative=True)
    found = outcome.findings[0]
    assert found.event is Event.RACE and "between blocks" in sentence(found)
    assert found.place is not None and found.place.line in bad_lines("one_grid_sync_too_few")


@pytest.mark.parametrize("cooperative", [False, True])
def test_only_a_cooperative_launch_has_a_grid(cooperative: bool) -> None:
    outcome, _, b = watch("asks_for_a_grid", 2, 64, cooperative=cooperative)
    assert outcome.findings == () and b[:64].tolist() == [cooperative] * 64
    outcome, _, _ = watch("grid_syncs", 2, 64, cooperative=cooperative)
    assert [f.event for f in outcome.findings] == ([] if cooperative else [Event.TRAP])


def test_a_block_alone_passes_grid_sync() -> None:
    """When blocks are sampled, the others never come."""
    launch = Launch(
        kernel="grid_syncs",
        grid=(132, 1, 1),
        block=(64, 1, 1),
        shared_bytes=0,
        params=b"".join(at.to_bytes(8, "little") for at in (3 << 40, 2 << 40)),
        pointers=(),
        cooperative=True,
    )
    memory = ((1, "A"), (2, "B"), (3, "C"))
    plan = Plan(
        size=Size.of(m=1, n=1, k=1),
        allocations=tuple(
            Allocation(name=name, address=at << 40, size=4 * 64 * 132) for at, name in memory
        ),
        operations=(launch,),
        inputs=2,
        outputs=1,
    )
    ptx, folder = compiled(KERNELS, "sm_80")
    (sample,) = Sampler(ptx, folder, engine()).sample(plan, 20.0)
    assert sample.complete and sample.blocks == 4
    turns = 4 * 4 * 2 * 2  # of blocks, steps, barriers and looks; blocks have two warps
    assert max(row.warps for row in sample.rows) <= turns


def test_blocks_that_do_not_wait_need_not_fit() -> None:
    outcome, _, b = watch("last_block_adds", 200, 64, resident=(1,))
    assert outcome.findings == () and b[3] == 600


@pytest.mark.parametrize(("stack", "events"), [(1024, [Event.STACK_OVERFLOW]), (8192, [])])
def test_a_larger_stack_takes_deeper_calls(stack: int, events: list[Event]) -> None:
    outcome, _, _ = watch("recursion", 1, 32, (40,), stack=stack)
    assert [found.event for found in outcome.findings] == events
