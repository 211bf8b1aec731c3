"""The top rung's choice of a kernel, beside the measured best of its kernels."""

import re
import subprocess
from pathlib import Path
from statistics import fmean

import pytest

from benchmarks.ladder.candidates import kernels
from ptxsim.records import Record
from tests.support.files import beside

ROOT = Path(__file__).resolve().parents[2]
ESTIMATE = ROOT / "reference" / "sgemm" / "32_dispatch" / "estimate.cuh"
LOG = ROOT / "docs" / "measurements" / "2026-11-22-h200-candidates.txt"
H200 = "{132, 232448, true}"
SHAPE = re.compile(r"(\d+)x(\d+)x(\d+): ")
# Kernel, slices, whole, sharers: what the log and the program write.
Division = tuple[str, int, int, int]


class Shape(Record):
    size: tuple[int, int, int]
    microseconds: dict[Division, float]


def measured() -> list[Shape]:
    found: list[Shape] = []
    for line in LOG.read_text().splitlines():
        if head := SHAPE.match(line):
            m, n, k = map(int, head.groups())
            found.append(Shape(size=(m, n, k), microseconds={}))
        elif line.startswith("  "):
            name, slices, whole, sharers, time = line.split()
            division = (name, int(slices), int(whole), int(sharers))
            found[-1].microseconds[division] = float(time)
    return found


def choices(sizes: list[tuple[int, int, int]], device: str, folder: Path) -> list[Division]:
    program = folder / "choice"
    source = beside(__file__, "choose.cpp", device=device)
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{ESTIMATE.parent}"]
    command += ["-x", "c++", "-", "-o", str(program)]
    subprocess.run(command, input=source, text=True, check=True)
    shapes = "".join(f"{m} {n} {k}\n" for m, n, k in sizes)
    done = subprocess.run([program], input=shapes, capture_output=True, text=True, check=True)
    names = kernels()
    found = []
    for line in done.stdout.splitlines():
        kernel, *rest = map(int, line.split())
        slices, whole, sharers = rest
        found.append((names[kernel], slices, whole, sharers))
    return found


def test_the_choice_loses_at_most_three_per_cent_on_average(tmp_path: Path) -> None:
    shapes = measured()
    assert len(shapes) >= 60
    chosen = choices([each.size for each in shapes], H200, tmp_path)
    lost = {}
    for shape, division in zip(shapes, chosen, strict=True):
        assert division in shape.microseconds, f"{shape.size}: {division} was not measured"
        best = min(shape.microseconds.values())
        lost[shape.size] = shape.microseconds[division] / best - 1
    assert fmean(lost.values()) <= 0.03
    assert max(lost.values()) <= 0.15, max(lost, key=lost.__getitem__)


@pytest.mark.parametrize(
    ("device", "families"),
    [
        ("{108, 166912, false}", ("SMALL", "DIRECT", "THIN")),  # A100: no bulk copies
        (
            "{68, 65536, false}",
            ("SMALL_64x32_SHALLOW", "THIN"),
        ),  # RTX 2080 Ti: little shared memory
    ],
)
def test_other_devices_get_only_what_they_can_run(
    device: str, families: tuple[str, ...], tmp_path: Path
) -> None:
    chosen = choices([each.size for each in measured()], device, tmp_path)
    assert chosen
    assert all(name.startswith(families) for name, *_ in chosen)
