"""The judge's times beside a native program's: `python -m benchmarks.native`.

The native program is the same sgemm.cu with the real CUDA runtime and a main function of ours
(program.cu), which calls run_custom itself. It and the judge's replay take turns on one GPU. A
table of medians goes to standard output; the last line says how many rows are out of tolerance.

    python -m benchmarks.native --only alice,keeps --sizes 512,1024
    python -m benchmarks.native --build-only     # compile everything; needs no GPU
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import cubes, tools
from grader.base.errors import Rejected
from grader.base.result import Build
from grader.build.entry import INCLUDE
from grader.judge.program import GradingContext
from grader.run.probe import first_gpu_arch
from grader.run.protocol import CaseOutcome, PlannedCase
from ptxsim.plan import Plan

if TYPE_CHECKING:  # it needs a GPU
    from grader.run.gpu.session import GpuSession

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
VARIANTS = ("allocates", "allocates_in_a_stream", "keeps", "three_kernels", "fills", "waits")
SIZES = (512, 1000, 1024, 2048, 4096, 8192)
ROUNDS = 3  # turns of each side
REPETITIONS, SECONDS = 40, 0.15  # of a turn: as many, or as long; three at least
LONGEST_S = 0.5  # of one call; slower sizes are left out
_OPTIONS = ("--expt-relaxed-constexpr", "--extended-lambda")  # as the judge compiles
TOLERANCE, TOLERANCE_SMALL = 0.01, 0.03  # from 1000 on, and below


@dataclass
class Made:
    name: str
    program: Path
    build: Build
    plans: dict[int, Plan]


@dataclass
class Row:
    name: str
    n: int
    native_ms: float
    judge_ms: float
    waits: bool

    @property
    def off(self) -> float:
        return self.judge_ms / self.native_ms - 1

    @property
    def agrees(self) -> bool:
        return abs(self.off) <= (TOLERANCE if self.n >= 1000 else TOLERANCE_SMALL)


def folders(scratch: Path) -> dict[str, Path]:
    """Every rung, alice, and the variants as submissions of their own."""
    found = {"alice": ROOT / "submissions" / "alice"}
    for variant in VARIANTS:
        folder = scratch / variant
        folder.mkdir()
        shutil.copy(HERE / "variants.cuh", folder)
        shutil.copy(ROOT / "submissions" / "alice" / "sgemm.cu", folder / "product.cuh")
        text = f'#define VARIANT {variant.upper()}\n#include "variants.cuh"\n'
        (folder / "sgemm.cu").write_text(text)
        found[variant] = folder
    rungs = sorted(each.parent for each in (ROOT / "reference" / "sgemm").glob("[0-9]*/sgemm.cu"))
    return found | {rung.name: rung for rung in rungs}


def made(
    name: str, folder: Path, sizes: Sequence[int], arch: str, scratch: Path, bench: GradingContext
) -> Made:
    """Both sides, compiled."""
    program = scratch / f"{name}.native"
    nvcc, cutlass = bench.toolchain.nvcc, bench.toolchain.cutlass_include
    # The submission comes first: the starter, which has the lab's header, has a sgemm.cu too.
    places = (folder, INCLUDE, ROOT / "starter", cutlass)
    includes = [f"-I{each}" for each in places if each is not None]
    command = [str(nvcc), f"-arch={arch}", "-std=c++17", "-O3", *_OPTIONS, *includes]
    command += ["-x", "cu", str(HERE / "program.cu"), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{name}: nvcc cannot build the native program:\n{done.stderr}")
    try:
        ready = cubes(folder, tuple(sizes), bench, arch)
    except Rejected as refused:
        raise SystemExit(f"{name}: {refused}") from None
    return Made(name, program, ready.built, {plan.size["m"]: plan for plan in ready.plans})


def compared(bench: GpuSession, each: Made, sizes: Sequence[int]) -> list[Row]:
    """A row for each size that is not too slow."""
    rows: list[Row] = []
    with subprocess.Popen(
        [each.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as native:
        for n in sizes:
            if rows and rows[-1].native_ms * (n / rows[-1].n) ** 3 > 1e3 * LONGEST_S:
                break
            rows.append(one(bench, each, native, n))
            print_row(rows[-1])
        assert native.stdin
        native.stdin.close()
    return rows


def one(bench: GpuSession, each: Made, native: subprocess.Popen[str], n: int) -> Row:
    from grader.run.gpu.plan_replay import load_module
    from grader.run.gpu.session import MeasuredCase

    assert native.stdin and native.stdout
    plan = each.plans[n]
    theirs: list[float] = []
    ours: list[float] = []
    waited = False
    with bench.arena.memory(plan) as memory:
        module = load_module(each.build.cubin.read_bytes())
        begun = CaseOutcome(id="case", size=plan.size.dims, amount=bench.problem.amount(plan.size))
        planned = PlannedCase(case=begun, plan=plan)
        case = MeasuredCase(bench, module, planned, memory)
        _, wrong = case.set_up()
        if wrong is not None:
            raise SystemExit(f"{each.name} at {n}: {wrong.message}")
        for _ in range(ROUNDS):
            native.stdin.write(f"{n} {REPETITIONS} {SECONDS}\n")
            native.stdin.flush()
            answer = native.stdout.readline().split()
            if not answer:
                raise SystemExit(f"{each.name} at {n}: the native program ended")
            waited = answer[0] == "1"
            theirs += map(float, answer[1:])
            turn: list[float] = []
            while len(turn) < 3 or (len(turn) < REPETITIONS and sum(turn) < 1e3 * SECONDS):
                case.fresh()
                turn.append(case.timed(charged=True).gpu_ms)
            ours += turn
    if waited != plan.waits:
        print(f"{each.name} at {n}: the program waits: {waited}; its plan says {plan.waits}")
    return Row(each.name, n, statistics.median(theirs), statistics.median(ours), waited)


def print_row(row: Row) -> None:
    print(
        f"{row.name:24} {row.n:6} {row.native_ms:12.5f} {row.judge_ms:12.5f} "
        f"{100 * row.off:+8.2f} %  {'waits' if row.waits else '':6}"
        f"{'' if row.agrees else 'OUT OF TOLERANCE'}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.native", description=__doc__)
    parser.add_argument("--only", help="names, separated by commas")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="such as 512,1024")
    parser.add_argument("--arch", help="such as sm_90; that of the GPU here")
    parser.add_argument("--build-only", action="store_true", help="time nothing")
    options = parser.parse_args()
    sizes = sorted(int(each) for each in options.sizes.split(","))
    arch = options.arch or first_gpu_arch()
    if arch is None:
        raise SystemExit("no NVIDIA GPU here; with --build-only give --arch")
    with tempfile.TemporaryDirectory(prefix="sgemm-native-") as name:
        scratch, shared = Path(name), tools()
        all_of_them = folders(scratch)
        names = options.only.split(",") if options.only else list(all_of_them)
        unknown = [each for each in names if each not in all_of_them]
        if unknown:
            raise SystemExit(f"no {unknown[0]!r}; there are {', '.join(all_of_them)}")
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            jobs = [
                pool.submit(made, each, all_of_them[each], sizes, arch, scratch, shared)
                for each in names
            ]
            ready = [job.result() for job in jobs]
        print(f"{len(ready)} submissions compiled both ways for {arch}", flush=True)
        if options.build_only:
            return
        from grader.problems.gemm.gemm import Gemm
        from grader.run.gpu.session import GpuSession, LoadedAhead

        bench = GpuSession(LoadedAhead(Gemm()))
        print(f"{bench.gpu.name}, driver {bench.gpu.driver}, {date.today()}")
        print(f"{'submission':24} {'N':>6} {'native ms':>12} {'judge ms':>12} {'off':>10}")
        with bench.stream:
            rows = [row for each in ready for row in compared(bench, each, sizes)]
    out = [row for row in rows if not row.agrees]
    print(f"{len(rows)} rows, {len(out)} out of tolerance")
    sys.exit(bool(out))


if __name__ == "__main__":
    main()
