"""A rung beside the best of cublasSgemm and cublasLt, over many shapes, on the GPU at hand.

    python -m benchmarks.research.ladder.shapes [--rung reference/sgemm/32_dispatch] \\
        [--only 768x768x768,…]
    python -m benchmarks.research.ladder.shapes --draw 100 --seed 35

A native program (program.cu) calls run_custom and all candidates of cuBLAS by turns: L2 cold, both
launched plainly, medians. Shapes below 1.00 come with what bounds them, and the geometric means of
all shapes and of the squares from 512 to 8192 stand at the end. Ends with 1 if a product is wrong.
Shapes are drawn log-uniformly, each extent from 16 to 12288, with a product of at least 2^24.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import statistics
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

from grader.build.entry import INCLUDE
from grader.build.toolchain import find_toolchain
from grader.run.probe import first_gpu_arch
from ptxsim.plan import Record

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent
SQUARES = (
    *range(256, 1025, 64),
    *range(1280, 4097, 256),
    *(4097, 5000, 5120, 6144, 7000, 8191, 8192, 10000, 16384),
)
RECTANGLES = """
256x256x16384 128x8192x4096 8192x64x4096 65536x128x512 8192x512x8192 1024x1024x16384 64x64x8192
509x509x4099 1021x769x251 2039x1021x509 37x4099x1031 32x8192x2048 16384x32x1024 8192x16x4096
512x2048x1024 2048x512x512 300x3000x700 1000x200x3000 700x700x7000 100x100x10000 4096x4096x64
2048x2048x128 256x4096x256 16384x256x128 64x2048x64 3000x129x511 1500x1500x300 333x777x2222
4096x96x1536 96x10000x640 2500x1250x5000 1x4096x4096 4096x1x4096 8192x4x4096 2x8192x1000
"""
FP32_TFLOPS, DRAM_TBPS = 63.8, 4.3  # an H200, by a loop of FFMA and by a copy; both measured
_OPTIONS = ("--expt-relaxed-constexpr", "--extended-lambda")  # as the judge compiles
_LEAST, _MOST, _PRODUCT = 16, 12288, 2**24  # of shapes drawn: extents, and their product
_EXTENT = re.compile(r"(\d+)x(\d+)x(\d+)")


class Shape(Record):
    """The extents of a product."""

    m: int
    n: int
    k: int

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"


class Row(Record):
    """One shape's medians, in microseconds."""

    size: Shape
    off: float  # largest difference to cublasSgemm, relative to what rounding explains
    ours: float
    best: float  # of cuBLAS
    name: str  # of that candidate
    divisions: dict[str, float]  # of rung 32, where they were asked for: see candidates.py

    @property
    def wrong(self) -> bool:
        return not self.off <= 1

    @property
    def ratio(self) -> float:
        return self.best / self.ours

    @property
    def tflops(self) -> float:
        return 2e-6 * self.size.m * self.size.n * self.size.k / self.ours

    def bound(self) -> str:
        """What the roofline says: the share of the larger of its two times."""
        m, n, k = self.size.m, self.size.n, self.size.k
        arithmetic = 2e-6 * m * n * k / FP32_TFLOPS
        memory = 4e-6 * (m * k + n * k + m * n) / DRAM_TBPS
        if max(arithmetic, memory) < self.ours / 2:
            return f"latency: FFMA {arithmetic:.1f} us, memory {memory:.1f} us"
        name = "FFMA" if arithmetic > memory else "memory"
        return f"{name}, at {100 * max(arithmetic, memory) / self.ours:.0f} %"


def shapes(text: str | None) -> list[Shape]:
    """The shapes of ``--only``, or all. Ends the program with a line about one that is none."""
    if text is None:
        squares = [Shape(m=n, n=n, k=n) for n in SQUARES]
        return squares + [_shape(each) for each in RECTANGLES.split()]
    return [_shape(each) for each in text.split(",")]


def drawn(count: int, seed: int, step: int = 1) -> list[tuple[int, int, int]]:
    """Return so many shapes, whose extents are multiples of ``step``."""
    draw = random.Random(seed)
    found: list[tuple[int, int, int]] = []
    while len(found) < count:
        extents = [
            math.exp(draw.uniform(math.log(_LEAST), math.log(_MOST))) // step * step
            for _ in range(3)
        ]
        if math.prod(extents) >= _PRODUCT:
            m, n, k = map(int, extents)
            found.append((m, n, k))
    return found


def sizes_asked_for(options: argparse.Namespace) -> list[Shape]:
    """Return the shapes of ``--draw`` or ``--only``, or all."""
    if options.draw:
        return [Shape(m=m, n=n, k=k) for m, n, k in drawn(options.draw, options.seed)]
    return shapes(options.only)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that ``sizes_asked_for`` reads."""
    parser.add_argument("--only", help="shapes, separated by commas: 768x768x768,256x256x16384")
    parser.add_argument("--draw", type=int, default=0, metavar="N", help="N shapes at random")
    parser.add_argument("--seed", type=int, default=0, help="of the shapes drawn")


def _shape(text: str) -> Shape:
    found = _EXTENT.fullmatch(text.strip())
    if found is None or "0" in found.groups():
        raise SystemExit(f"not a shape: {text!r}; write MxNxK, such as 256x256x16384")
    m, n, k = map(int, found.groups())
    return Shape(m=m, n=n, k=k)


def repetitions(size: Shape) -> int:
    """Fewer for large products, at least three."""
    seconds = 2 * size.m * size.n * size.k / (FP32_TFLOPS * 1e12)
    return int(min(15, max(3, 0.01 / seconds)))


def parse(line: str) -> Row:
    """A row from a line of the program."""
    m, n, k, off, *candidates = line.split()
    times = dict(zip(candidates[::2], map(float, candidates[1::2]), strict=True))
    ours = times.pop("run_custom")
    divisions = {each: times.pop(each) for each in list(times) if "/" in each}
    name = min(times, key=times.__getitem__)
    size = Shape(m=int(m), n=int(n), k=int(k))
    return Row(
        size=size, off=float(off), ours=ours, best=times[name], name=name, divisions=divisions
    )


def build(rung: Path, arch: str, program: Path, *more: str) -> None:
    """The native program with the rung in it."""
    nvcc = find_toolchain().nvcc
    command = [str(nvcc), f"-arch={arch}", "-std=c++17", "-O3", *_OPTIONS, *more]
    # The rung comes first: the starter, which has the lab's header, has a sgemm.cu too.
    command += [f"-I{each}" for each in (rung, INCLUDE, ROOT / "starter")]
    command += ["-x", "cu", str(HERE / "program.cu"), "-o", str(program), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{rung}: nvcc cannot build the program:\n{done.stderr}")


def library(name: str) -> str:
    """Where a library of cuBLAS lies: beside the toolkit, or in a wheel."""
    nvcc = find_toolchain().nvcc.resolve()
    places = [nvcc.parents[1], *(Path(each) / "nvidia" for each in sys.path if each)]
    for place in places:
        for found in sorted(place.glob(f"**/lib{name}.so.1[23]")):
            return str(found)
    raise SystemExit(f"no lib{name}.so.12 or .13 under {', '.join(map(str, places))}")


def line_of(row: Row) -> str:
    text = f"{row.size!s:18} {row.ours:10.2f} us {row.tflops:6.2f} TFLOPS  {row.ratio:.3f}"
    text += f" of {row.name:11}"
    if row.wrong:
        return f"{text}  WRONG: {row.off:.3g}"
    return text if row.ratio >= 1 else f"{text}  {row.bound()}"


def summary(rows: list[Row]) -> str:
    squares = [
        row.ratio
        for row in rows
        if row.size.m == row.size.n == row.size.k and 512 <= row.size.m <= 8192
    ]
    ratios = [row.ratio for row in rows]
    text = f"{len(rows)} shapes, {sum(each < 1 for each in ratios)} below 1.00, the lowest "
    text += f"{min(ratios):.3f}; geometric mean {statistics.geometric_mean(ratios):.3f}"
    if squares:
        text += f", over the squares of 512 to 8192 {statistics.geometric_mean(squares):.3f}"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.research.ladder.shapes", description=__doc__
    )
    parser.add_argument("--rung", type=Path, default=ROOT / "reference/sgemm/32_dispatch")
    add_options(parser)
    options = parser.parse_args()
    sizes = sizes_asked_for(options)
    if not (options.rung / "sgemm.cu").is_file():
        raise SystemExit(f"{options.rung}: no sgemm.cu there")
    arch = first_gpu_arch()
    if arch is None:
        raise SystemExit("no NVIDIA GPU here")
    with tempfile.TemporaryDirectory(prefix="sgemm-shapes-") as scratch:
        program = Path(scratch) / "program"
        build(options.rung, arch, program)
        print(f"{options.rung.name}, {arch}, {date.today()}", flush=True)
        command = [str(program), library("cublas"), library("cublasLt")]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as running:
            assert running.stdin and running.stdout
            rows = []
            for size in sizes:
                running.stdin.write(f"{size.m} {size.n} {size.k} {repetitions(size)}\n")
                running.stdin.flush()
                answer = running.stdout.readline()
                if not answer:
                    raise SystemExit(f"the program ended at {size}")
                rows.append(parse(answer))
                print(line_of(rows[-1]), flush=True)
            running.stdin.close()
    print(summary(rows))
    sys.exit(any(row.wrong for row in rows))


if __name__ == "__main__":
    main()
