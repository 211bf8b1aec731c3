"""Bounds and estimates against the clock: `python -m benchmarks.bound_h200` on a GPU machine.

The reference ladder, some fixtures and a corpus of patterns (``bound_corpus``): median TFLOPS of a
few launches with a cold L2 beside the hard bound and the estimate. Says which exceed their bound,
which exceed their estimate, the ratio's median, and the rank correlation; for the corpus, on which
nothing was calibrated, apart.

    --sizes 2048,4096,8192   edges of the products; 4096 alone unless given
    --raw FILE               keep every figure as JSON; python -m benchmarks.bound_report FILE
                             prints the tables of such a file without a GPU
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec

from benchmarks.bound_corpus import Ready, patterns, prepared
from benchmarks.bound_report import Measured, Raw, report
from benchmarks.measure import ALICE, ROOT, machine
from grader.base import gpus
from grader.problems.gemm.gemm import Gemm
from grader.problems.inputs import fresh_key
from grader.run.gpu.plan_replay import Replay, load_module
from grader.run.gpu.session import GpuSession, LoadedAhead
from grader.run.probe import first_gpu_arch, gpu_names

OTHERS = (
    *("naive_swapped", "tiled_template", "register_tile", "float4_vectorised", "double_buffer"),
    *("warp_tile", "warp_shuffle", "cp_async_ptx", "cp_async_intrinsic", "split_k_atomic"),
    *("dynamic_shared", "work_per_thread", "odd_blocks", "noinline_function", "split_k_workspace"),
)
LONGEST = 1.5  # seconds of one launch by the estimate; what takes longer is left out
LAUNCHES = 3
MOST_SECONDS = 1.0  # of all launches of one kernel and size


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--sizes", default="4096")
    options.add_argument("--raw", type=Path)
    given = options.parse_args()
    raw = measured([int(size) for size in given.sizes.split(",")])
    if given.raw:
        given.raw.write_bytes(msgspec.json.format(msgspec.json.encode(raw)))
    report(raw)


def measured(sizes: Sequence[int]) -> Raw:
    arch = first_gpu_arch()
    card = gpus.find(gpu_names()[0]) if arch else None
    assert arch and card, "no known GPU here"
    with tempfile.TemporaryDirectory(prefix="sgemm-bounds-") as scratch:
        corpus = [each.write(Path(scratch)) for each in patterns()]
        rungs = sorted(path.parent for path in ROOT.glob("reference/sgemm/*/sgemm.cu"))
        others = [ROOT / "tests" / "fixtures" / "correct" / name for name in OTHERS]
        folders = [*rungs, ALICE, *others, *corpus]
        jobs = [(folder, n, arch, card, folder in corpus) for folder in folders for n in sizes]
        # Spawned: a forked process cannot use the parent's GPU, and threads would share one lock.
        with ProcessPoolExecutor(
            max_workers=min(len(jobs), os.cpu_count() or 1),
            mp_context=multiprocessing.get_context("spawn"),
        ) as pool:
            ready = list(pool.map(prepared, *zip(*jobs, strict=True)))
    bench = GpuSession(LoadedAhead(Gemm()))
    rows = []
    for job, each in zip(jobs, ready, strict=True):
        if each is None or Gemm().work(each.plan.size) / each.bound.speed / 1e12 > LONGEST:
            print(f"left out: {job[0].name} {job[1]}", flush=True)
            continue
        with bench.stream:
            speed = timed(bench, each)
        rows.append(
            Measured(
                name=each.name,
                corpus=each.corpus,
                n=each.plan.size["n"],
                speed=speed,
                about=each.bound.speed,
                most=each.bound.most.speed,
                resource=each.bound.resource,
            )
        )
    return Raw(where=f"{gpu_names()[0]}, {machine()}", rows=tuple(rows))


def timed(bench: GpuSession, each: Ready) -> float:
    """Median TFLOPS; the first launch is not counted unless it is the only one."""
    size = each.plan.size
    with bench.arena.memory(each.plan) as memory:
        for operand, buffer in zip(
            Gemm().operands(size)[:2], memory.given(each.plan), strict=False
        ):
            bench.kernels.fill(buffer.array(operand), fresh_key(), operand.values)
        module = load_module(Path(each.cubin).read_bytes())
        replay = Replay(module, each.plan, memory, bench.kernels, bench.stream, bench.caller)
        replay.set_up()
        started = time.monotonic()
        times: list[float] = []
        while len(times) <= LAUNCHES and (not times or time.monotonic() - started < MOST_SECONDS):
            times.append(bench.time(replay.launch))
    return Gemm().speed(size, statistics.median(times[1:] or times))


if __name__ == "__main__":
    main()
