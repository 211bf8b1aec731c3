"""What the benchmarks share: benches, commands that are timed, figures and where they are from.

Programs that measure seconds or bytes are ``run`` here, which prints a table and takes two options:

    --keep FILE    keep the figures as JSON
    --beside FILE  compare them with kept ones; refused if these are of another machine

A figure beyond its limit ends the program with status 1.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from grader.build.toolchain import find_toolchain
from grader.judge.program import GradingContext, Program, prepare
from grader.labs.lab import DEFAULT_LAB, find_lab, load_lab
from grader.labs.submission import load_submission
from grader.problems.gemm.gemm import Gemm
from grader.results.result import Result
from grader.run.probe import first_gpu_arch, gpu_names
from grader.sandbox.running import Sandbox
from ptxsim.plan import Record, Size

ROOT = Path(__file__).parents[1]
ALICE = ROOT / "submissions" / "alice"
GRADE = (sys.executable, "-m", "grader.cli")
MAIN = Gemm().interface.main
_INTERVAL_S = 0.02


# --- where, and with what -----------------------------------------------------------------------


def machine() -> str:
    """CPU, cores, memory, versions and date in one line."""
    return f"{_hardware()}, {time.strftime('%Y-%m-%d')}"


def _hardware() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(": ")[1] for line in lines if "model name" in line), "unknown CPU")
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{model}, {len(os.sched_getaffinity(0))} cores, {gib:.0f} GiB, "
        f"nvcc {find_toolchain().cuda_version}, Python {platform.python_version()}"
    )


def gpus_here() -> tuple[str, ...]:
    """The names of the GPUs. Ends the program where there is none."""
    names = gpu_names()
    if not names:
        raise SystemExit("no NVIDIA GPU here")
    return names


def on_gpu() -> GradingContext:
    """The default lab on the GPU at hand. Ends the program where there is none."""
    gpus_here()
    return GradingContext(
        lab=load_lab(),
        toolchain=find_toolchain(),
        sandbox=Sandbox.open("auto"),
        gpu_arch=first_gpu_arch(),
    )


def tools(name: str = DEFAULT_LAB.stem) -> GradingContext:
    """A lab's, with limits for large kernels."""
    lab = load_lab(find_lab(name))
    limits = msgspec.structs.replace(lab.limits, compile_s=120, record_s=20, memory_mb=16384)
    return GradingContext(
        lab=msgspec.structs.replace(lab, limits=limits),
        toolchain=find_toolchain(),
        sandbox=Sandbox.open("auto"),
    )


def cubes(folder: Path, extents: tuple[int, ...], bench: GradingContext, arch: str) -> Program:
    """A submission at sizes n³. Raises Rejected."""
    sizes = [Size.of(m=n, n=n, k=n) for n in extents]
    submission = load_submission(folder, bench.lab.problem.interface.main)
    return prepare(submission, sizes, bench, arch)


# --- commands -----------------------------------------------------------------------------------


class Spent(Record):
    """By a command and what it started."""

    seconds: float
    cpu_s: float
    mib: float  # at most, together


def spent(*words: str | Path, cwd: Path = ROOT, **variables: str) -> Spent:
    """Run a command without its output. Raises CalledProcessError if it fails."""
    command = list(map(str, words))
    started, peak = time.monotonic(), 0
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    ended = 0
    while not ended:
        peak = max(peak, _resident_bytes(process.pid))
        time.sleep(_INTERVAL_S)
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Spent(
        seconds=time.monotonic() - started,
        cpu_s=usage.ru_utime + usage.ru_stime,
        mib=max(peak / 2**20, usage.ru_maxrss / 1024),
    )


def _resident_bytes(process: int) -> int:
    """Memory of a process and all below it; what ends meanwhile counts as nothing."""
    base = Path("/proc") / str(process)
    try:
        pages = int((base / "statm").read_text().split()[1])
        lists = [path.read_text() for path in base.glob("task/*/children")]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    children = " ".join(lists).split()
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(_resident_bytes(int(c)) for c in children)


# --- figures ------------------------------------------------------------------------------------


def on_the_gpu(result: Result) -> tuple[float, float]:
    """Seconds for timed sizes, and for those that are only verified."""
    timed = sum(case.seconds or 0 for case in result.cases if case.timing)
    return timed, sum(case.seconds or 0 for case in result.cases) - timed


class Figure(Record):
    """What was measured, by the names of its columns; ``most`` has limits of some of them."""

    what: str
    values: Mapping[str, float]
    most: Mapping[str, float] = {}


class Kept(Record):
    title: str
    hardware: str
    date: str
    figures: tuple[Figure, ...]


def run(
    title: str,
    measure: Callable[[], Iterable[Figure]],
    **variants: Callable[[], Iterable[Figure]],
) -> None:
    """Measure; print, keep and compare, as the command line says. Ends the program beyond a
    limit. ``variants`` are measured instead by options of their names."""
    options = argparse.ArgumentParser()
    options.set_defaults(measure=measure)
    for name, other in variants.items():
        options.add_argument(f"--{name}", dest="measure", action="store_const", const=other)
    options.add_argument("--keep", type=Path, metavar="FILE", help="keep the figures as JSON")
    options.add_argument("--beside", type=Path, metavar="FILE", help="compare with kept figures")
    chosen = options.parse_args()
    figures, date = tuple(chosen.measure()), time.strftime("%Y-%m-%d")
    now = Kept(title=title, hardware=_hardware(), date=date, figures=figures)
    print(f"{now.hardware}, {now.date}\n\n{shown(now)}")
    if chosen.keep:
        chosen.keep.write_bytes(msgspec.json.format(msgspec.json.encode(now)))
    if chosen.beside:
        before = msgspec.json.decode(chosen.beside.read_bytes(), type=Kept)
        print(f"\n{compared(before, now)}")
    if beyond := [each.what for each in figures if _beyond(each)]:
        raise SystemExit(f"a limit is passed: {'; '.join(beyond)}")


def _beyond(figure: Figure) -> bool:
    return any(figure.values[name] > most for name, most in figure.most.items())


def shown(kept: Kept) -> str:
    """One row for each figure; a column of values has its limits beside it."""
    header, columns = [kept.title], []
    for name in dict.fromkeys(name for each in kept.figures for name in each.values):
        header.append(name)
        columns.append([_short(each.values.get(name)) for each in kept.figures])
        if any(name in each.most for each in kept.figures):
            header.append("at most")
            columns.append([_short(each.most.get(name)) for each in kept.figures])
    rows = zip((each.what for each in kept.figures), *columns, strict=True)
    return table(header, [list(row) for row in rows])


def compared(before: Kept, now: Kept) -> str:
    """How many times as much of everything. Ends the program for figures of another machine."""
    if (before.title, before.hardware) != (now.title, now.hardware):
        raise SystemExit(f"not to be compared: {before.title}, {before.hardware}")
    old = {each.what: each.values for each in before.figures}
    rows = [
        [each.what, name, _short(old[each.what][name]), _short(value), f"{value / was:.2f}"]
        for each in now.figures
        for name, value in each.values.items()
        if (was := old.get(each.what, {}).get(name))
    ]
    return table([now.title, "", before.date, now.date, "ratio"], rows)


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
