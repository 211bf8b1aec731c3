"""What ptxas makes of many variants of a rung, without a GPU.

    python -m benchmarks.research.variants.machine_code RUNG VARIANTS [--arch sm_90]

VARIANTS is a file as in ``variants.py``. For the main loop of each kernel: instructions, FFMA, the
cycles that these wait for register banks; and what the kernel spills.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.measure import MAIN, machine, table, tools
from benchmarks.research.variants.variants import parse
from grader.base.errors import Rejected
from grader.build.sass import disassemble
from grader.judge.program import compile_for
from grader.labs.submission import load_submission
from grader.model.main_loop import summarise

_FILE = re.compile(r"_GLOBAL__N__\w+?_cu_[0-9a-f]{8}")  # what stands for an unnamed namespace


def rows(folder: Path, arch: str) -> list[list[str]]:
    """One for every kernel with a main loop."""
    bench = tools()
    try:
        built = compile_for(load_submission(folder, MAIN), bench, arch)
    except Rejected as error:
        return [[folder.name, str(error), "", "", "", ""]]
    found = []
    for kernel in map(summarise, disassemble(built.cubin, bench.toolchain, bench.sandbox)):
        if loop := kernel.loop:
            waits = 128 * loop.bank_conflicts / loop.ffma
            sizes = (loop.instructions, loop.ffma, f"{waits:.2f}", kernel.local_stores)
            found.append([folder.name, _FILE.sub("", kernel.name), *map(str, sizes)])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rung", type=Path)
    parser.add_argument("variants", type=Path)
    parser.add_argument("--arch", default="sm_90")
    arguments = parser.parse_args()
    print(f"{machine()}, {arguments.rung}, {arguments.arch}\n")
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(2) as pool:
        folders = [
            variant.write(arguments.rung, Path(scratch))
            for variant in parse(arguments.variants.read_text())
        ]
        found = pool.map(lambda folder: rows(folder, arguments.arch), folders)
        header = ("variant", "kernel", "loop", "FFMA", "waits for 128 FFMA", "spilled")
        print(table(header, [row for each in found for row in each]))


if __name__ == "__main__":
    main()
