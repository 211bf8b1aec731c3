"""The rungs of a lab, and the variants of the last HGEMM rung, beside cuBLAS, on a Hopper GPU.

    python -m benchmarks.research.beside_cublas --build  # compiles into build/hgemm; needs no GPU
    python -m benchmarks.research.beside_cublas          # checks and times what was built: 4 min
    python -m benchmarks.research.beside_cublas --beside fast12=fast12.so  # with another's kernel
    python -m benchmarks.research.beside_cublas --lab sgemm --draw 100 --seed 35  # random shapes

Every program is a rung's .cu file, compiled by nvcc for sm_90a as a library with the real CUDA
runtime; run_custom is called as a program calls it. Of cublasSgemm (in 16 bits: cublasGemmEx) and
cublasLt's candidates the best of three turns is timed, and the next one if it is within 2 %; the
better of the two is cuBLAS. Shapes are drawn log-uniformly, each extent from 16 to 12288, with a
product of at least 2^24; in 16 bits extents are multiples of 8.
Inputs are normal random numbers, because power depends on them. cuBLAS and all programs take turns
on the same inputs, warm and back to back, in an order that changes; what runs first in a turn is
not timed, because the clocks follow the power that the program before needed. A figure is the
median of its turns. A program whose result differs from cuBLAS's by more than rounding explains is
shown as wrong, and not timed. A library given with --beside takes squares, of hgemm in BF16, and
offers sgemm_grader_entry as grader/build/entry.py declares it.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.research.ladder.shapes import drawn
from grader.build.entry import INCLUDE, entry_source
from grader.build.toolchain import find_toolchain
from grader.labs.lab import find_lab, load_lab
from grader.problems.gemm.cublas import WORKSPACE_BYTES, Cublas, types_for
from grader.problems.gemm.layout import FORMATS, Format, Layout, header
from grader.run.gpu.measure import close_to_the_fastest
from ptxsim.plan import Size

_ROOT = Path(__file__).resolve().parents[2]
_HGEMM = "hgemm"
_TOP = "13_dispatch"  # of hgemm
_SQUARES = (1024, 2048, 4096, 6144, 8192, 16384)
_OTHERS = (
    *((1000, 1000, 1000), (4097, 4097, 4097)),
    *((8192, 8192, 1024), (8192, 1024, 8192), (1024, 8192, 8192)),
    *((4096, 4096, 16384), (16384, 2048, 2048), (2048, 16384, 4096)),
)
_TURNS = 3  # by default
_CHOICE = 3  # turns of cuBLAS's candidates, before the best of them are measured
_NEAR = 1.1  # who is slower than so many times the best in the first turn takes no other
_WARM_S = 0.03  # at the start of a turn, not timed
_TURN_S = 0.05  # of one turn after that; at least three calls
_BUDGET_S = 225.0  # of the whole run
_AHEAD_S = 20e-6  # of the GPU's time before each call: more than a call takes the host
_QUEUE = 200  # calls that may wait on the GPU
_CUBLAS = "cuBLAS"
_SPIN = """extern "C" __global__ void spin(unsigned long long nanoseconds) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - start < nanoseconds);
}"""
_LIMIT = {"f32": 2.0**-15, "f16": 2.0**-9, "bf16": 2.0**-6}  # of the largest element's size


@dataclass(frozen=True)
class Program:
    name: str
    folder: str
    defines: tuple[str, ...] = ()
    format: Format = "f16"
    lab: str = _HGEMM
    squares_only: bool = False  # a variant that is there for the large sizes
    beside: Path | None = None  # a library that is not ours

    @property
    def library(self) -> Path:
        return self.beside or self.build / f"{self.name}-{self.format}.so"

    @property
    def build(self) -> Path:
        return _ROOT / "build" / self.lab


def programs(lab: str) -> list[Program]:
    rungs = sorted(file.parent.name for file in (_ROOT / "reference" / lab).glob("*/*.cu"))
    if lab != _HGEMM:
        return [Program(name, name, format="f32", lab=lab) for name in rungs]
    found = [Program(name, name, squares_only=name != _TOP) for name in rungs]
    found += [
        Program(f"variant-{i}", _TOP, (f"HGEMM_VARIANT={i}",), squares_only=i > 3)
        for i in range(25)
    ]
    found += [
        Program(
            f"variant-{i}-band-{band}",
            _TOP,
            (f"HGEMM_VARIANT={i}", f"HGEMM_BAND={band}"),
            squares_only=True,
        )
        for i in (0, 1)
        for band in (4, 16)
    ]
    found += [Program(f"choice-{i}", _TOP, (f"HGEMM_CHOICE={i}",)) for i in range(27)]
    found.append(Program(_TOP, _TOP, ("HGEMM_BF16",), "bf16"))
    return found


def build(program: Program) -> str:
    """Compiles; returns the compiler's words if it fails."""
    problem = load_lab(find_lab(program.lab)).problem
    numbers = FORMATS[program.format]
    scratch = program.build / f"{program.name}-{program.format}"
    scratch.mkdir(parents=True, exist_ok=True)
    text = entry_source(problem.interface).replace("__half", numbers.element.name)
    (scratch / "entry.cu").write_text(text)
    (scratch / "gemm.cuh").write_text(header(Layout(), numbers))
    toolchain = find_toolchain("sm_90a")
    includes = [INCLUDE, scratch, _ROOT / "reference" / program.lab / program.folder]
    if toolchain.cutlass_include is not None:
        includes.append(toolchain.cutlass_include)
    command = [str(toolchain.nvcc), "-gencode=arch=compute_90a,code=sm_90a", "-std=c++17", "-O3"]
    command += ["--expt-relaxed-constexpr", "-shared", "-Xcompiler=-fPIC", "-cudart=static"]
    command += [*(f"-I{each}" for each in includes), *(f"-D{each}" for each in program.defines)]
    command += [str(scratch / "entry.cu"), "-o", str(program.library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr


def build_all(chosen: Sequence[Program], jobs: int) -> int:
    with ThreadPoolExecutor(jobs) as pool:
        failures = 0
        for program, words in zip(chosen, pool.map(build, chosen), strict=True):
            failures += bool(words)
            print(program.library.name, words or "built", flush=True)
    return 1 if failures else 0


class Card:
    """The GPU: one format's matrices, cuBLAS, and turns of a few calls."""

    def __init__(self, format: Format) -> None:
        import cupy
        from cupy_backends.cuda.libs import cublas as _loads_it  # noqa: F401

        self._cupy: Any = cupy
        self._format = format
        self._stream = cupy.cuda.Stream.null
        self._workspace = cupy.empty(WORKSPACE_BYTES, cupy.uint8)
        self._types = types_for(format, format, "f32")
        self._blas = Cublas(self._stream.ptr, self._workspace.data.ptr, self._types)
        self._start, self._end = cupy.cuda.Event(), cupy.cuda.Event()
        self._spin = cupy.RawKernel(_SPIN, "spin")

    def matrices(self, size: Size) -> list[Any]:
        """A, B and C; in 16 bits as words."""
        m, n, k = size.extents
        cupy = self._cupy
        found = []
        for count in (m * k, k * n):
            normal = cupy.random.standard_normal(count, dtype=cupy.float32)
            if self._format == "f32":
                found.append(normal)
            elif self._format == "f16":
                found.append(normal.astype(cupy.float16).view(cupy.uint16))
            else:
                found.append((normal.view(cupy.uint32) >> 16).astype(cupy.uint16))
        return [*found, cupy.zeros(m * n, found[0].dtype)]

    def values(self, words: Any) -> Any:
        cupy = self._cupy
        if self._format == "f32":
            return words.copy()
        if self._format == "f16":
            return words.view(cupy.float16).astype(cupy.float32)
        return (words.astype(cupy.uint32) << 16).view(cupy.float32)

    def baselines(self, size: Size, matrices: Sequence[Any]) -> dict[str, Callable[[], object]]:
        pointers = [each.data.ptr for each in matrices]
        layout = Layout()
        found: dict[str, Callable[[], object]] = (
            {"cublasSgemm": self._blas.sgemm(layout, size, *pointers)}
            if self._types.single
            else {"cublasGemmEx": self._blas.gemm_ex(layout, size, self._types, *pointers)}
        )
        found.update(self._blas.candidates(layout, size, *pointers))
        return found

    def seconds(self, call: Callable[[], object], calls: int) -> float:
        """Of one call, back to back. The host is ahead, or short calls would wait for it."""
        total = 0.0
        for begun in range(0, calls, _QUEUE):
            queued = min(_QUEUE, calls - begun)
            self._spin((1,), (1,), (self._cupy.uint64(1e9 * queued * _AHEAD_S),))
            self._start.record()
            for _ in range(queued):
                call()
            self._end.record()
            self._end.synchronize()
            total += float(self._cupy.cuda.get_elapsed_time(self._start, self._end)) / 1e3
        return total / calls

    def turn(self, call: Callable[[], object]) -> float:
        once = max(self.seconds(call, 2), 1e-6)
        self.seconds(call, int(_WARM_S / once) + 1)
        return self.seconds(call, max(3, int(_TURN_S / once)))

    def best(self, calls: Mapping[str, Callable[[], object]]) -> tuple[str, ...]:
        """Of cuBLAS's candidates the fastest, and the next one if it is close."""
        times = {name: [self.turn(call)] for name, call in calls.items()}
        least = min(first for (first,) in times.values())
        times = {name: each for name, each in times.items() if each[0] <= _NEAR * least}
        for _ in range(_CHOICE - 1):
            for name, each in times.items():
                each.append(self.turn(calls[name]))
        return close_to_the_fastest(times)

    def worst(self, got: Any, want: Any) -> float:
        """The largest difference, in units of the typical element."""
        cupy = self._cupy
        scale = float(cupy.sqrt((want * want).mean()))
        return float(cupy.abs(got - want).max()) / scale


def caller(program: Program, matrices: Sequence[Any], size: Size) -> Callable[[], object]:
    library = ctypes.CDLL(str(program.library))
    at = (ctypes.c_void_p * 3)(*(each.data.ptr for each in matrices))
    counts = (ctypes.c_size_t * 3)(*(each.size for each in matrices))
    dims = (ctypes.c_int * 3)(*size.extents)
    entry = library.sgemm_grader_entry
    return lambda: entry(at, counts, dims)


def measure(
    chosen: Sequence[Program],
    sizes: Sequence[tuple[int, int, int]],
    rounds: int = _TURNS,
    budget_s: float = _BUDGET_S,
) -> None:
    began = time.monotonic()
    cards = {each: Card(each) for each in {program.format for program in chosen}}
    for extents in sizes:
        size = Size.of(**dict(zip("mnk", extents, strict=True)))
        square = len(set(extents)) == 1 and extents[0] in _SQUARES
        for format, card in sorted(cards.items()):
            matrices = card.matrices(size)
            baselines = card.baselines(size, matrices)
            best = card.best(baselines)
            baselines[best[0]]()
            want = card.values(matrices[2])
            calls = {f"{_CUBLAS} ({name})": baselines[name] for name in best}
            for program in chosen:
                if program.format != format or (program.squares_only and not square):
                    continue
                call = caller(program, matrices, size)
                matrices[2].fill(math.nan if format == "f32" else 0x7FFF)
                call()
                worst = card.worst(card.values(matrices[2]), want)
                if worst <= _LIMIT[format] * 8:
                    calls[program.name] = call
                else:
                    print(f"{extents} {format} {program.name}: WRONG, off by {worst:.3g}")
            turns: dict[str, list[float]] = {name: [] for name in calls}
            for _ in range(rounds):
                if time.monotonic() - began > budget_s:
                    break
                for name in random.sample(list(calls), len(calls)):
                    turns[name].append(card.turn(calls[name]))
            _clocks()
            _show(extents, format, turns)
        if time.monotonic() - began > budget_s:
            print("out of time: the sizes that follow were not measured")
            return


def _show(extents: tuple[int, int, int], format: str, turns: dict[str, list[float]]) -> None:
    m, n, k = extents
    medians = {name: statistics.median(times) for name, times in turns.items() if times}
    if not medians:
        return
    baseline = min(ms for name, ms in medians.items() if name.startswith(_CUBLAS))
    for name, seconds in sorted(medians.items(), key=lambda pair: pair[1]):
        speed = 2 * m * n * k / seconds / 1e12
        shape = "×".join(map(str, extents))
        print(f"{shape:>18} {format:>4} {name:<28} {speed:7.1f} TFLOPS {baseline / seconds:6.3f}")
    sys.stdout.flush()


def _clocks() -> None:
    query = "--query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu"
    done = subprocess.run(
        ["nvidia-smi", query, "--format=csv,noheader"], capture_output=True, text=True, check=False
    )
    print(f"clocks, power, temperature: {done.stdout.strip() or 'not known'}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lab", default=_HGEMM, help="whose rungs")
    parser.add_argument("--build", action="store_true", help="only compile")
    parser.add_argument("--draw", type=int, default=0, metavar="N", help="N shapes at random")
    parser.add_argument("--seed", type=int, default=0, help="of the shapes drawn")
    parser.add_argument("--jobs", type=int, default=2, help="compilers at a time")
    parser.add_argument("--only", default="", help="names of programs, with commas between them")
    parser.add_argument("--turns", type=int, default=_TURNS, help="of each program at a size")
    parser.add_argument("--seconds", type=float, default=_BUDGET_S, help="of the whole run")
    parser.add_argument("--beside", action="append", default=[], metavar="NAME=LIBRARY")
    parser.add_argument("--sizes", default="", help="M×N×K as 4096 or 8192x1024x8192, with commas")
    chosen = parser.parse_args()
    wanted = set(filter(None, chosen.only.split(",")))
    some = [each for each in programs(chosen.lab) if not wanted or each.name in wanted]
    if chosen.build:
        return build_all(some, chosen.jobs)
    sizes = [_extents(text) for text in filter(None, chosen.sizes.split(","))]
    if chosen.draw:
        sizes = drawn(chosen.draw, chosen.seed, 8 if chosen.lab == _HGEMM else 1)
    built = [each for each in some if each.library.exists()]
    format: Format = "bf16" if chosen.lab == _HGEMM else "f32"
    for name, _, library in (text.partition("=") for text in chosen.beside):
        path = Path(library).resolve(strict=True)
        built.append(Program(name, "", format=format, squares_only=True, beside=path))
    # The sizes that matter most come first.
    measure(built, sizes or [*((n, n, n) for n in (8192, 4096, 6144, *_SQUARES[:2])), *_OTHERS,
                             (16384, 16384, 16384)], chosen.turns, chosen.seconds)  # fmt: skip
    return 0


def _extents(text: str) -> tuple[int, int, int]:
    numbers = [int(each) for each in text.split("x")]
    m, n, k = numbers * 3 if len(numbers) == 1 else numbers
    return m, n, k


if __name__ == "__main__":
    raise SystemExit(main())
