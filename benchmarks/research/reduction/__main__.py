"""Every rung of reference/reduction/ beside CUB's sum: `python -m benchmarks.research.reduction`.

Each rung is compiled with the real CUDA runtime and program.cu, which calls run_custom and CUB in
turn, cold: the L2 is overwritten before each call. The table gives GB/s of the median time and, in
brackets, the median ratio to CUB in the same pair. Needs a GPU and nvcc, and nothing else of the
grader; `--build-only --arch sm_90` compiles without a GPU.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent
INCLUDES = (ROOT / "grader" / "compile" / "include", ROOT / "grader" / "problems" / "reduction")
LADDER = ROOT / "reference" / "reduction"
SIZES = (
    1,
    1000,
    2**10,
    2**14,
    2**18,
    2**20,
    2**22,
    10**7 + 3,
    2**24,
    2**25,
    2**26,
    2**27,
    2**28 - 1,
    2**28,
)
PAIRS = 41


def nvcc(arch: str, *arguments: str) -> None:
    command = ["nvcc", f"-arch={arch}", "-std=c++17", "-O3", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")


def built(rungs: list[Path], arch: str, scratch: Path) -> dict[str, Path]:
    """A program for each rung."""
    baseline = scratch / "baseline.o"
    programs = {rung.name: scratch / rung.name for rung in rungs}

    def one(rung: Path) -> None:
        unit = str(programs[rung.name].with_suffix(".o"))
        options = (*(f"-I{each}" for each in INCLUDES), f"-I{rung}")
        nvcc(arch, *options, "-c", str(HERE / "program.cu"), "-o", unit)

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        jobs = [pool.submit(nvcc, arch, "-c", str(HERE / "baseline.cu"), "-o", str(baseline))]
        jobs += [pool.submit(one, rung) for rung in rungs]
        for job in jobs:
            job.result()
    for program in programs.values():
        nvcc(arch, str(program.with_suffix(".o")), str(baseline), "-o", str(program))
    return programs


def timed(program: Path, sizes: list[int], pairs: int) -> list[tuple[float, float]]:
    """GB/s and the ratio to CUB for every size."""
    asked = "".join(f"{n} {pairs}\n" for n in sizes)
    done = subprocess.run([program], input=asked, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode != 0 or len(lines) != len(sizes):
        raise SystemExit(f"{program.name}: {done.stderr}")
    found = []
    for n, line in zip(sizes, lines, strict=True):
        right, *times = line.split()
        if right != "1":
            raise SystemExit(f"{program.name}: wrong at {n}")
        ours, theirs = [list(map(float, times[at::2])) for at in (0, 1)]
        ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
        found.append((4e-6 * n / statistics.median(ours), ratio))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.research.reduction", description=__doc__
    )
    parser.add_argument("--only", help="names of rungs, separated by commas")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="such as 1024,4096")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--arch", default="native", help="such as sm_90")
    parser.add_argument("--build-only", action="store_true", help="time nothing")
    options = parser.parse_args()
    sizes = [int(each) for each in options.sizes.split(",")]
    rungs = sorted(each.parent for each in LADDER.glob("[0-9]*/reduction.cu"))
    if options.only:
        rungs = [rung for rung in rungs if rung.name in options.only.split(",")]
    with tempfile.TemporaryDirectory(prefix="reduction-") as name:
        programs = built(rungs, options.arch, Path(name))
        print(f"{len(programs)} rungs compiled, {date.today()}", flush=True)
        if options.build_only:
            return
        print("| rung | " + " | ".join(map(str, sizes)) + " |")
        print("|---" * (len(sizes) + 1) + "|")
        for rung, program in programs.items():
            cells = [
                f"{gb:.4g} ({ratio:.3f})" for gb, ratio in timed(program, sizes, options.pairs)
            ]
            print(f"| {rung} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
