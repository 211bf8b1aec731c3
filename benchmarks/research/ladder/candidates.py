"""Rung 32's kernels, each in every division that its estimate offers, on the GPU at hand.

    python -m benchmarks.research.ladder.candidates [--only 768x768x768,… | --draw 100 --seed 35]

Timed as by benchmarks.research.ladder.shapes, by turns with cuBLAS; those that the estimate gives
more than twice the time of its choice are left out. Each line: kernel, slices of K, tiles that a
block has alone, blocks that share the others, microseconds. The constants of the rung's
estimate.cuh were fitted to such times, and tests/ladder/test_ladder.py compares the choices with
some of them. Ends with 1 if a product is wrong.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.research.ladder.shapes import (
    ROOT,
    add_options,
    build,
    library,
    parse,
    repetitions,
    shapes,
    sizes_asked_for,
)
from grader.run.probe import first_gpu_arch

RUNG = ROOT / "reference/sgemm/32_dispatch"
# Beside those of benchmarks.research.ladder.shapes, without the two largest.
MORE = (
    "1000x1000x1000,1100x1100x1100,1152x1152x1152,2000x2000x2000,16x8192x4096,8192x8x4096,"
    "12x5000x3001,8x4096x4096,16x1000x4096"
)


def kernels() -> list[str]:
    """The names of the rung's kernels, in their order."""
    text = (RUNG / "estimate.cuh").read_text()
    inside = re.search(r"enum Name \{(.*?)KERNELS", text, re.DOTALL)
    assert inside
    return re.findall(r"\w+", inside[1])


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.research.ladder.candidates", description=__doc__
    )
    add_options(parser)
    options = parser.parse_args()
    sizes = sizes_asked_for(options)
    if options.only is None and not options.draw:
        sizes = [each for each in sizes if each.m * each.n * each.k <= 8192**3] + shapes(MORE)
    arch = first_gpu_arch()
    if arch is None:
        raise SystemExit("no NVIDIA GPU here")
    names = kernels()
    wrong = False
    with tempfile.TemporaryDirectory(prefix="sgemm-candidates-") as scratch:
        program = Path(scratch) / "program"
        build(RUNG, arch, program, "-DDIVISIONS")
        lines = "".join(
            f"{each.m} {each.n} {each.k} {min(9, repetitions(each))}\n" for each in sizes
        )
        command = [str(program), library("cublas"), library("cublasLt")]
        done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, check=True)
        for line in done.stdout.splitlines():
            row = parse(line)
            wrong |= row.wrong
            print(f"{row.size}: best of cuBLAS {row.best:.2f} ({row.name})" + " WRONG" * row.wrong)
            for division, time in sorted(row.divisions.items(), key=lambda item: item[1]):
                kernel, *rest = division.split("/")
                print(" ", names[int(kernel)], *rest, f"{time:.2f}")
    sys.exit(wrong)


if __name__ == "__main__":
    main()
