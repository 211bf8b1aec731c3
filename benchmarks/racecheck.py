"""compute-sanitizer's racecheck beside the simulator: ``python -m benchmarks.racecheck DIR…`` on a
machine with a GPU, with clones of the suites that ``benchmarks.race_suites`` names.

racecheck watches shared memory, so only kernels that use it are compared. Each case runs on the GPU
in a process of its own with the arguments that the simulator gives it; cases that nvcc or the
simulator refuses are left out. The times are those of the two checkers for all compared cases, one
core each.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.measure import machine, table
from benchmarks.race_suites import (
    DYNAMIC,
    Case,
    Verdict,
    all_cases,
    argument_types,
    compiled,
    small_numbers,
    verdict,
    write_ignored,
)
from ptxsim import Simulator, default_engine
from ptxsim.findings import FindingKind

_SECONDS = 120
_RACES = {FindingKind.RACE, FindingKind.BARRIER_DIVERGENCE}


@dataclass(frozen=True)
class Compared:
    case: Case
    simulator: bool
    racecheck: bool | None  # None: it did not end well
    simulator_s: float
    racecheck_s: float
    words: str  # of racecheck, when it did not end well


def compare(case: Case, ptx: Path) -> Compared | None:
    """None for a case that is not compared."""
    text = ptx.read_text()
    if ".shared" not in text:
        return None
    started = time.monotonic()
    said: Verdict = verdict(case, ptx)
    simulator_s = time.monotonic() - started
    if said.refused:
        return None
    entries = Simulator(text, Path("/"), default_engine()).declared.entries
    kernels = {name: [each.size for each in entry.params] for name, entry in entries.items()}
    arrays = ptx.with_suffix(".npz")
    np.savez(arrays, *case.inputs)
    shape = [case.grid, case.block, case.numbers]
    spec = msgspec.json.encode([str(ptx), str(arrays), *shape, kernels])
    words = ["compute-sanitizer", "--tool", "racecheck", "--print-limit", "1", sys.executable]
    started = time.monotonic()
    try:
        done = subprocess.run(
            [*words, "-m", "benchmarks.racecheck", "--launch"],
            input=spec,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
        output = (done.stdout + done.stderr).decode(errors="replace")
    except subprocess.TimeoutExpired:
        output = f"no end after {_SECONDS} s"
    found = re.search(r"RACECHECK SUMMARY: (\d+) hazards?", output)
    well = found is not None and "all launched" in output
    return Compared(
        case=case,
        simulator=any(each.kind in _RACES for each in said.findings),
        racecheck=bool(found and int(found[1])) if well or (found and int(found[1])) else None,
        simulator_s=simulator_s,
        racecheck_s=time.monotonic() - started,
        words="" if well else next(reversed(output.strip().splitlines()), ""),
    )


def launch(spec: bytes) -> None:
    """Launch every kernel of a file with every number, as ``race_suites`` does."""
    import cupy

    path, arrays, grid, block, numbers, kernels = msgspec.json.decode(spec)
    inputs = list(np.load(arrays).values())
    module = cupy.RawModule(path=path)
    dynamic = DYNAMIC if ".extern .shared" in Path(path).read_text() else 0
    for name, sizes in kernels.items():
        types = argument_types(name)
        for number in numbers:
            arguments: list[object] = []
            pointers = 0
            for place, size in enumerate(sizes):
                kind = types[place] if place < len(types) else ""
                if kind in ("float", "double"):
                    arguments.append(np.float32(1.5) if kind == "float" else np.float64(1.5))
                elif size == 8:
                    given = pointers < len(inputs)
                    array = inputs[pointers] if given else small_numbers(pointers)
                    arguments.append(cupy.asarray(array))
                    pointers += 1
                else:
                    arguments.append(np.dtype(f"i{size}").type(number))
            module.get_function(name)(tuple(grid), tuple(block), arguments, shared_mem=dynamic)
            cupy.cuda.Device().synchronize()
    print("all launched")


def rows(compared: list[Compared]) -> Iterator[list[str]]:
    for (suite, bug), group in groupby(compared, lambda each: (each.case.suite, each.case.bug)):
        part = list(group)
        well = [each for each in part if each.racecheck is not None]
        both = sum(each.simulator and bool(each.racecheck) for each in well)
        alone = [sum(each.simulator and not each.racecheck for each in well)]
        alone.append(sum(bool(each.racecheck) and not each.simulator for each in well))
        counts = [len(well), both, *alone, len(well) - both - sum(alone), len(part) - len(well)]
        times = (sum(e.simulator_s for e in well), sum(e.racecheck_s for e in well))
        yield [suite, bug or "none", *map(str, counts), *(f"{each:.0f} s" for each in times)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", type=Path, nargs="*", metavar="DIR")
    parser.add_argument("--launch", action="store_true", help="one case, from stdin")
    asked = parser.parse_args()
    if asked.launch:
        launch(sys.stdin.buffer.read())
        return
    cases = all_cases(asked.suites)
    default_engine()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_ignored(folder)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            files = list(pool.map(lambda case: compiled(case, folder), cases))
        made = [
            (case, ptx) for case, ptx in zip(cases, files, strict=True) if isinstance(ptx, Path)
        ]
        with ProcessPoolExecutor(os.cpu_count()) as processes:
            found = [each for each in processes.map(compare, *zip(*made, strict=True)) if each]
    found.sort(key=lambda each: (each.case.suite, each.case.bug, each.case.name))
    heads = ["suite", "bug", "compared", "both", "simulator alone", "racecheck alone", "neither"]
    print(machine(), "", table([*heads, "failed", "simulator", "racecheck"], list(rows(found))), "")
    for each in found:
        if each.racecheck is None:
            print(f"failed    {each.case.suite} {each.case.name}: {each.words}")
        elif each.racecheck != each.simulator:
            by = "simulator" if each.simulator else "racecheck"
            print(f"{by} {each.case.suite} {each.case.name} ({each.case.bug or 'clean'})")


if __name__ == "__main__":
    main()
