"""Programmatic launches: what a kernel does before griddepcontrol.wait is held against the kernels
that may still run by then."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from grader.model import Allocation, Launch, Memset, Plan, Size
from ptxsim.findings.finding import Event, Finding, Severity
from ptxsim.simulator import SimLimits, SimOutcome, Simulator
from tests.support.english import sentence
from tests.support.kernels import FIRST_ADDRESS, SPACING, compiled, engine

THREADS, BLOCKS = 64, 4
N = THREADS * BLOCKS

SOURCE = r"""
#include <cuda/barrier>
#include <cooperative_groups.h>
#define KERNEL extern "C" __global__ void
#define I (blockIdx.x * blockDim.x + threadIdx.x)
#define WAIT cudaGridDependencySynchronize()
#define TRIGGER cudaTriggerProgrammaticLaunchCompletion()
// in: A (read by all), w: a workspace, out: C, flag: one int
#define ARGS (const float* in, float* w, float* out, int* flag)

KERNEL pack ARGS { w[I] = in[I]; }
KERNEL packs_early ARGS { TRIGGER; w[I] = in[I]; }
KERNEL packs_and_publishes ARGS {
  w[I] = in[I];
  __threadfence();
  __syncthreads();
  TRIGGER;
}
KERNEL publishes_half ARGS {
  w[I] = in[I];
  __threadfence();
  __syncthreads();
  if (blockIdx.x) TRIGGER;
}
KERNEL publishes_too_soon ARGS {
  __threadfence();
  TRIGGER;
  w[I] = in[I];
}
KERNEL reads_out ARGS { w[I] = out[I]; }
KERNEL counts ARGS { atomicAdd(flag, 1); }
KERNEL raises ARGS {
  w[I] = in[I];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(flag, 1);
}

KERNEL use ARGS {
  WAIT;
  out[I] = w[I ^ 1];
}
KERNEL no_wait ARGS {
  out[I] = w[I ^ 1];  // BAD
}
KERNEL writes_before ARGS {
  w[I] = 1;  // BAD
  WAIT;
  out[I] = w[I];
}
KERNEL writes_out_before ARGS {
  out[I] = 2;  // BAD
  WAIT;
}
KERNEL other_before ARGS {
  float own = in[I];
  out[I] = 1;
  WAIT;
  out[I] = own + w[I ^ 1];
}
KERNEL one_waits ARGS {
  if (threadIdx.x == 40) WAIT;
  __syncthreads();
  out[I] = w[I ^ 1];
}
KERNEL one_waits_without_barrier ARGS {
  if (threadIdx.x == 40) WAIT;
  out[I] = w[I ^ 1];  // BAD
}
KERNEL one_lane_waits ARGS {
  if (threadIdx.x % 32 == 3) WAIT;
  __syncwarp();
  out[I] = w[I ^ 1];
}
KERNEL waits_at_an_mbarrier ARGS {
  __shared__ cuda::barrier<cuda::thread_scope_block> ready;
  if (threadIdx.x == 0) init(&ready, blockDim.x);
  __syncthreads();
  if (threadIdx.x < 32) WAIT;
  ready.arrive_and_wait();
  out[I] = w[I ^ 1];
}
extern "C" __global__ __cluster_dims__(2, 1, 1) void waits_for_its_cluster ARGS {
  if (blockIdx.x % 2 == 0) WAIT;
  cooperative_groups::this_cluster().sync();
  out[I] = w[I ^ 1];
}
KERNEL half_of_the_blocks ARGS {
  if (blockIdx.x % 2 == 0) WAIT;
  out[I] = w[I ^ 1];  // BAD
}
KERNEL copies ARGS {
  __shared__ float tile[64];
  __pipeline_memcpy_async(&tile[threadIdx.x], &w[I], 4);  // BAD
  __pipeline_commit();
  WAIT;
  __pipeline_wait_prior(0);
  out[I] = tile[threadIdx.x];
}
KERNEL adds ARGS { atomicAdd(flag, 1); }
KERNEL resets ARGS {
  if (I == 0) *flag = 0;  // BAD
  WAIT;
}
KERNEL looks_at_the_flag ARGS {
  while (atomicAdd(flag, 0) < 4) {}
  out[I] = w[I ^ 1];
}
KERNEL nothing ARGS {}
KERNEL waits ARGS { WAIT; }
KERNEL triggers_then_waits ARGS {
  TRIGGER;
  WAIT;
}
KERNEL waits_then_triggers ARGS {
  WAIT;
  TRIGGER;
}
KERNEL reads_out_before ARGS {
  w[I] = out[I];  // BAD
}
""".replace("#include <cuda/barrier>", "#include <cuda/barrier>\n#include <cuda_pipeline.h>")


@cache
def simulator() -> Simulator:
    ptx, folder = compiled(SOURCE, "sm_90")
    return Simulator(ptx, folder, engine())


def launched(*kernels: str) -> SimOutcome:
    """One call that launches ``kernels``, those with a + in front programmatically."""
    arrays = [np.arange(N, dtype=np.float32), *np.zeros((2, N), np.float32), np.zeros(1, np.int32)]
    allocations = tuple(
        Allocation(name=name, address=FIRST_ADDRESS + i * SPACING, size=array.nbytes)
        for i, (name, array) in enumerate(zip("ABCF", arrays, strict=True))
    )
    operations = tuple(
        Launch(
            kernel=kernel.removeprefix("+"),
            grid=(BLOCKS, 1, 1),
            block=(THREADS, 1, 1),
            shared_bytes=0,
            params=b"".join(a.address.to_bytes(8, "little") for a in allocations),
            pointers=(),
            programmatic=kernel.startswith("+"),
        )
        for kernel in kernels
    )
    plan = Plan(
        size=Size.of(m=1, n=1, k=1),
        allocations=allocations,
        operations=operations,
        inputs=4,
        outputs=0,
    )
    buffers = {i: array.reshape(-1).view(np.uint8) for i, array in enumerate(arrays)}
    return simulator().run(plan, buffers, SimLimits(seconds=20))


def line(kernel: str) -> int:
    """The marked line of ``kernel``."""
    lines = SOURCE.splitlines()
    (first,) = (k for k, text in enumerate(lines) if f" {kernel} ARGS" in text)
    return next(k for k, text in enumerate(lines[first:], first + 1) if text.endswith("// BAD"))


def early(outcome: SimOutcome) -> list[Finding]:
    assert outcome.stopped is None
    return [each for each in outcome.findings if each.event is Event.BEFORE_GRID_WAIT]


RIGHT = (
    ("pack", "use"),
    ("pack", "no_wait"),
    ("pack", "+use"),
    ("packs_early", "+use"),
    ("pack", "+other_before"),
    ("pack", "+one_waits"),
    ("pack", "+one_lane_waits"),
    ("pack", "+waits_at_an_mbarrier"),
    ("pack", "+waits_for_its_cluster"),
    ("packs_and_publishes", "+no_wait"),
    ("counts", "+adds"),
    ("raises", "+looks_at_the_flag"),
    ("pack", "+use", "+use"),
    ("pack", "+waits", "+no_wait"),
    ("pack", "+waits_then_triggers", "+no_wait"),
    ("pack", "+nothing", "no_wait"),
    ("pack", "+nothing", "+use"),
)
WRONG = (
    ("pack", "+no_wait"),
    ("packs_early", "+no_wait"),
    ("publishes_half", "+no_wait"),
    ("publishes_too_soon", "+no_wait"),
    ("pack", "+writes_before"),
    ("reads_out", "+writes_out_before"),
    ("pack", "+one_waits_without_barrier"),
    ("pack", "+half_of_the_blocks"),
    ("pack", "+copies"),
    ("counts", "+resets"),
    ("pack", "+nothing", "+no_wait"),
    ("pack", "+triggers_then_waits", "+no_wait"),
    ("pack", "+use", "+reads_out_before"),
)


@pytest.mark.parametrize("kernels", RIGHT, ids=" ".join)
def test_who_waits_is_not_accused(kernels: tuple[str, ...]) -> None:
    outcome = launched(*kernels)
    assert outcome.findings == () and outcome.stopped is None


@pytest.mark.parametrize("kernels", WRONG, ids=" ".join)
def test_what_is_done_too_early(kernels: tuple[str, ...]) -> None:
    (found,) = early(launched(*kernels))
    assert found.severity is Severity.ERROR
    assert found.place is not None and found.place.line == line(kernels[-1].removeprefix("+"))


def test_the_sentence_says_what_the_kernel_before_may_do() -> None:
    (reads,) = early(launched("pack", "+no_wait"))
    assert "reads B[" in sentence(reads)
    assert "may still be writing there" in sentence(reads)
    (writes,) = early(launched("reads_out", "+writes_out_before"))
    assert "writes C[" in sentence(writes)
    assert "may still be reading there" in sentence(writes)


def test_the_time_limit_holds_between_launches() -> None:
    array = np.zeros(1 << 20, np.uint8)
    memory = Allocation(name="a", address=1 << 32, size=array.nbytes)
    fill = Memset(allocation=0, delta=0, value=1, size=array.nbytes)
    plan = Plan(
        size=Size.of(m=1, n=1, k=1),
        allocations=(memory,),
        operations=(fill,) * 100_000,
        inputs=1,
        outputs=0,
    )
    outcome = simulator().run(plan, {0: array}, SimLimits(seconds=0.2))
    assert outcome.stopped == "time"
