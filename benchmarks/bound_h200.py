"""Bounds and estimates against the clock: `python -m benchmarks.bound_h200` on a GPU machine.

The reference ladder, some fixtures and a corpus of patterns (``bound_corpus``): median TFLOPS of a
few launches with a cold L2 beside the hard bound and the estimate. Says which exceed their bound,
which exceed their estimate, the ratio's median, and the rank correlation; for the corpus, on which
nothing was calibrated, apart.

    --sizes 2048,4096,8192   edges of the products; 4096 alone unless given
    --raw FILE               keep every figure as JSON
    --from FILE              print the tables of such a file; needs no GPU
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
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.bound_corpus import patterns
from benchmarks.machine import machine, table
from grader.backends.gpu.bench import SharedBench
from grader.backends.gpu.plan_replay import Replay, load_module
from grader.backends.probe import first_gpu_arch, gpu_names
from grader.backends.simulator.device import CpuDevice, read_declarations
from grader.compile.building import compile_submission
from grader.errors import Rejected
from grader.hardware import gpus
from grader.labs.lab import Limits
from grader.model import Bound, Mnk, Plan, Record
from grader.performance.explanation import explain_speed
from grader.performance.sass import disassemble
from grader.problems.inputs import fresh_key
from grader.record.recording import record_plans
from grader.sandbox.running import Sandbox
from grader.submission.folder import load_submission
from grader.toolchain.discovery import find_toolchain

ROOT = Path(__file__).parents[1]
OTHERS = (
    *("naive_swapped", "tiled_template", "register_tile", "float4_vectorised", "double_buffer"),
    *("warp_tile", "warp_shuffle", "cp_async_ptx", "cp_async_intrinsic", "split_k_atomic"),
    *("dynamic_shared", "work_per_thread", "odd_blocks", "noinline_function", "split_k_workspace"),
)
LONGEST = 1.5  # seconds of one launch by the estimate; what takes longer is left out
LAUNCHES = 3
MOST_SECONDS = 1.0  # of all launches of one kernel and size


class Ready(Record):
    name: str
    corpus: bool
    cubin: str
    plan: Plan
    bound: Bound


class Measured(Record):
    """One kernel at one size."""

    name: str
    corpus: bool
    n: int
    tflops: float
    about: float
    most: float
    resource: str  # of the estimate

    @property
    def share(self) -> float:
        return self.tflops / self.about


class Raw(Record):
    where: str
    rows: tuple[Measured, ...]


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--sizes", default="4096")
    options.add_argument("--raw", type=Path)
    options.add_argument("--from", type=Path, dest="source")
    given = options.parse_args()
    if given.source:
        report(msgspec.json.decode(given.source.read_bytes(), type=Raw))
        return
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
        rungs = sorted(path.parent for path in ROOT.glob("reference/*/sgemm.cu"))
        others = [ROOT / "tests" / "fixtures" / "correct" / name for name in OTHERS]
        folders = [*rungs, ROOT / "submissions" / "alice", *others, *corpus]
        jobs = [(folder, n, arch, card, folder in corpus) for folder in folders for n in sizes]
        # Spawned: a forked process cannot use the parent's GPU, and threads would share one lock.
        with ProcessPoolExecutor(
            max_workers=min(len(jobs), os.cpu_count() or 1),
            mp_context=multiprocessing.get_context("spawn"),
        ) as pool:
            ready = list(pool.map(prepared, *zip(*jobs, strict=True)))
    bench = SharedBench()
    rows = []
    for job, each in zip(jobs, ready, strict=True):
        if each is None or each.plan.size.flops / each.bound.tflops / 1e12 > LONGEST:
            print(f"left out: {job[0].name} {job[1]}", flush=True)
            continue
        most = each.bound.most
        assert most is not None
        with bench.stream:
            tflops = timed(bench, each)
        rows.append(
            Measured(
                name=each.name,
                corpus=each.corpus,
                n=each.plan.size.n,
                tflops=tflops,
                about=each.bound.tflops,
                most=most.tflops,
                resource=each.bound.resource,
            )
        )
    return Raw(where=f"{gpu_names()[0]}, {machine()}", rows=tuple(rows))


def report(raw: Raw) -> None:
    print(f"{raw.where}\n")
    rows = [
        [
            *(each.name, str(each.n), f"{each.tflops:.4g}", f"{each.most:.4g}"),
            *(f"{each.about:.4g}", each.resource, f"{100 * each.share:.1f} %"),
        ]
        for each in raw.rows
    ]
    heads = ["kernel", "N", "TFLOPS", "at most", "about", "limit", "of the estimate"]
    print(table(heads, rows))
    for title, part in (
        ("all kernels", raw.rows),
        ("the corpus alone", [each for each in raw.rows if each.corpus]),
    ):
        if len(part) > 1:
            print(f"\n{title}: {len(part)} measurements")
            summarise(part)


def summarise(rows: Sequence[Measured]) -> None:
    clock, about, most = (
        np.array([getattr(row, name) for row in rows]) for name in ("tflops", "about", "most")
    )
    print(f"rank correlation (Spearman) with the estimate {spearman(clock, about):.4f}")
    print(f"rank correlation (Spearman) with the bound {spearman(clock, most):.4f}")
    print(f"median share of the estimate {np.median(clock / about):.3f}")
    for title, limit in (("bound", most), ("estimate", about)):
        over = [
            f"{row.name} {row.n} ({row.tflops:.4g} of {value:.4g})"
            for row, value in zip(rows, limit, strict=True)
            if row.tflops > value
        ]
        print(f"exceed their {title}: {', '.join(over) or 'none'}")


def prepared(folder: Path, n: int, arch: str, card: gpus.Gpu, corpus: bool) -> Ready | None:
    """Built, recorded and bounded; None when it cannot be."""
    toolchain, sandbox = find_toolchain(), Sandbox.open("auto")
    submission = load_submission(folder)
    size = Mnk(m=n, n=n, k=n)
    try:
        built = compile_submission(
            submission, toolchain, sandbox, arch=arch, compile_s=120, memory_mb=8192
        )
    except Rejected:
        return None
    declared = read_declarations(built, str(folder), sandbox)
    (plan,) = record_plans(
        built,
        submission,
        [size],
        toolchain,
        sandbox,
        declared=declared,
        record_s=20,
        memory_mb=4096,
    )
    if not isinstance(plan, Plan):
        return None
    code = partial(disassemble, built.cubin, toolchain, sandbox)
    with CpuDevice(sandbox, Limits(memory_mb=16384)) as simulator:
        why = explain_speed(built, str(folder), plan, code, simulator, gpu=card)
    if why is None or not why.bounds:
        return None
    return Ready(
        name=folder.name,
        corpus=corpus,
        cubin=str(built.cubin),
        plan=plan,
        bound=why.bounds[0],
    )


def timed(bench: SharedBench, each: Ready) -> float:
    """Median TFLOPS; the first launch is not counted unless it is the only one."""
    size = each.plan.size
    with bench.arena.memory(each.plan) as memory:
        for buffer in memory.given()[:2]:
            bench.kernels.fill(buffer.floats(), fresh_key())
        module = load_module(Path(each.cubin).read_bytes())
        replay = Replay(module, each.plan, memory, bench.kernels, bench.stream, bench.caller)
        replay.set_up()
        started, times = time.monotonic(), []
        while len(times) <= LAUNCHES and (not times or time.monotonic() - started < MOST_SECONDS):
            times.append(bench.time(replay.launch))
    return size.flops / (statistics.median(times[1:] or times) * 1e-3) / 1e12


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    ranks = [np.argsort(np.argsort(values)).astype(float) for values in (first, second)]
    return float(np.corrcoef(*ranks)[0, 1])


if __name__ == "__main__":
    main()
