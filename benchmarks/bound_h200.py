"""The bound model against the clock: `python -m benchmarks.bound_h200` on a GPU machine.

The reference ladder and other kernels at three sizes: median TFLOPS of a few launches with a cold
L2 beside the bound; how often the bound is exceeded, how near it is, and the rank correlation.
"""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

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
from grader.problems.inputs import fresh_key
from grader.record.recording import record_plans
from grader.sandbox.running import Sandbox
from grader.submission.folder import load_submission
from grader.toolchain.discovery import find_toolchain

ROOT = Path(__file__).parents[1]
SIZES = (2048, 4096, 8192)
OTHERS = (
    *("naive_swapped", "tiled_template", "register_tile", "float4_vectorised", "double_buffer"),
    *("warp_tile", "warp_shuffle", "cp_async_ptx", "cp_async_intrinsic", "split_k_atomic"),
    *("dynamic_shared", "work_per_thread", "odd_blocks", "noinline_function", "split_k_workspace"),
)
LONGEST = 3.0  # seconds of one launch by the bound; what takes longer is left out
NEAR = 0.75  # share of the bound that kernels bound by computing should reach
LAUNCHES = 3
MOST_SECONDS = 2.5  # of all launches of one kernel and size


class Ready(Record):
    name: str
    cubin: str
    plan: Plan
    bound: Bound


def main() -> None:
    arch = first_gpu_arch()
    card = gpus.find(gpu_names()[0]) if arch else None
    assert arch and card, "no known GPU here"
    print(f"{gpu_names()[0]}, {machine()}\n", flush=True)
    rungs = sorted(path.parent for path in ROOT.glob("reference/*/sgemm.cu"))
    others = [ROOT / "tests" / "fixtures" / "correct" / name for name in OTHERS]
    folders = [*rungs, ROOT / "submissions" / "alice", *others]
    jobs = [(folder, n) for folder in folders for n in SIZES]
    with ThreadPoolExecutor(max_workers=8) as pool:
        ready = list(pool.map(lambda job: prepared(*job, arch, card), jobs))
    bench = SharedBench()
    rows, pairs, shares = [], [], []
    for (folder, n), each in zip(jobs, ready, strict=True):
        if each is None or each.plan.size.flops / each.bound.tflops / 1e12 > LONGEST:
            rows.append([folder.name, str(n), "", "left out", "", ""])
            continue
        with bench.stream:
            tflops = timed(bench, each)
        pairs.append((tflops, each.bound.tflops))
        share = tflops / each.bound.tflops
        mark = " exceeded" if share > 1 else ""
        words = [f"{tflops:.4g}", f"{each.bound.tflops:.4g}", each.bound.resource]
        rows.append([folder.name, str(n), *words, f"{100 * share:.1f} %{mark}"])
        shares.append((rows[-1], share))
    print(table(["kernel", "N", "TFLOPS", "bound", "resource", "of the bound"], rows))
    measured, bounds = np.array(pairs).T
    over = int((measured > bounds).sum())
    print(f"\n{len(pairs)} measurements; bound exceeded {over} times")
    print(f"rank correlation (Spearman) {spearman(measured, bounds):.4f}")
    far = [" ".join(row[:2]) for row, share in shares if share < NEAR]
    print(f"below {100 * NEAR:.0f} % of the bound: {', '.join(far) or 'none'}")


def prepared(folder: Path, n: int, arch: str, card: gpus.Gpu) -> Ready | None:
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
    with CpuDevice(sandbox, Limits(memory_mb=16384)) as simulator:
        why = explain_speed(built, str(folder), plan, toolchain, sandbox, simulator, gpu=card)
    if why is None or not why.bounds:
        return None
    return Ready(name=folder.name, cubin=str(built.cubin), plan=plan, bound=why.bounds[0])


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
