"""Suites of racy and race-free kernels that others published, run in the simulator.

``python -m benchmarks.race_suites DIR…`` with clones of
https://github.com/JohnJacobsonIII/HiRace-Artifact-SC24 (Indigo), https://github.com/csl-iisc/ScoR,
https://github.com/mc-imperial/gpuverify, https://github.com/elliotsayes/faial or
https://github.com/cogumbreiro/faial-tutorial. nvcc compiles each case (``--keep FOLDER`` keeps the
PTX); the simulator runs it in both orders, on inputs made here. The status is 1 if a clean case has
a finding.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby, product
from pathlib import Path

import numpy as np

from benchmarks.measure import machine, table
from ptxsim import RefusedProgram, SimLimits, SimOutcome, Simulator, default_engine
from ptxsim.findings import Finding, FindingKind, sentence
from ptxsim.plan import Allocation, Dim3, Launch, Plan, Size

_RACES = frozenset({FindingKind.RACE, FindingKind.BARRIER_DIVERGENCE})
_BOUNDS = _RACES | {FindingKind.OUT_OF_BOUNDS}
_LIMITS = SimLimits(seconds=60.0, steps=1 << 28)
DYNAMIC = 1 << 14  # bytes of shared memory
_NODES = 300  # of Indigo's graph
_NUMBERS = ("long", "unsigned long", "long long", "unsigned long long", "double")
# Words of other tools that say nothing to a compiler.
_IGNORED = (
    "__requires", "__requires_fresh_array", "__ensures", "__invariant", "__global_invariant",
    "__assume", "__assert", "__global_assert", "__function_wide_invariant", "__axiom",
    "__candidate_invariant", "__global_ensures", "__global_requires", "__bad_abstraction",
)  # fmt: skip

# What a suite calls free of races and CUDA's memory model does not, and why.
_RACY_TOO = (
    (
        "warpsync/(scan_warp|intragroup_scan|shuffle)",
        "a warp must run in step, with no __syncwarp()",
    ),
    ("test_copy_between_pointers", "two blocks store the same value"),
    ("pointertests/test12", "threads read a pointer that all of them store, with no barrier"),
    ("drf/parse-gv", "blocks read what others write; its tool looks at one block"),
)
_REASONS = (
    ("loop_unwind", "all threads store the same value, which harms nobody within a block"),
    ("racy-device.cu", "its __device__ pointer is null until host code sets it"),
    ("racy-loop-comma-in-cond", "nvcc drops the read, whose value is discarded"),
)


@dataclass(frozen=True)
class Case:
    suite: str
    bug: str  # its kind; "" if there is none
    source: Path
    grid: Dim3
    block: Dim3
    options: tuple[str, ...] = ("-lineinfo",)  # for nvcc
    numbers: tuple[int, ...] = (1,)  # what integers among the arguments are, run by run
    looks_for: frozenset[FindingKind] = _RACES
    inputs: tuple[np.ndarray, ...] = ()  # behind the first pointers; others lead to small numbers

    @property
    def name(self) -> str:
        return "/".join(self.source.parts[-3:])


@dataclass(frozen=True)
class Verdict:
    case: Case
    findings: tuple[Finding, ...] = ()  # of the kinds that the case looks for
    refused: str = ""


def _graph() -> tuple[np.ndarray, ...]:
    """Indigo's arrays: where each node's neighbours begin, the neighbours, two of data."""
    random = np.random.default_rng(1)
    degrees = random.integers(0, 7, _NODES)
    degrees[1:-1:37] = random.integers(70, 200, degrees[1:-1:37].size)
    degrees[[0, -1]] = 0  # so that an unchecked look at the first or last neighbour leaves the list
    begins = np.concatenate([[0], np.cumsum(degrees)])
    neighbours, *data = (random.integers(0, _NODES, begins[-1]) for _ in range(3))
    for values in data:
        values[0] = 0
    return tuple(each.astype(np.int32) for each in (begins, neighbours, *data))


def indigo(root: Path) -> Iterator[Case]:
    for source in sorted((root / "indigo/indigo_sources").glob("*/*.cu")):
        bugs = re.findall(r"_([a-z]+)Bug", source.stem)
        per_block = {"block": 1, "warp": 2}.get(source.parent.name.rpartition("_")[2], 64)
        blocks = 3 if "persistent" in source.stem else -(-_NODES // per_block) + 1
        yield Case(
            *("Indigo", " and ".join(bugs), source, (blocks, 1, 1), (64, 1, 1)),
            options=("-lineinfo", f"-I{root / 'indigo/indigo_include'}"),
            numbers=(_NODES,),
            looks_for=_BOUNDS,
            inputs=_graph(),
        )


def scor(root: Path) -> Iterator[Case]:
    for source in sorted((root / "microbenchmarks/src").glob("*.cu")):
        blocks, threads = re.findall(r"(?:NBLOCKS|TPERBLK) +(\d+)", source.read_text())
        bug = source.stem.split("_")[1] if source.stem.startswith("race") else ""
        yield Case("ScoR", bug, source, (int(blocks), 1, 1), (int(threads), 1, 1))


def _extents(text: str, option: str, most: int) -> Dim3:
    """What ``--blockDim=64`` or ``--gridDim=[64,2]`` says, within ``most`` altogether."""
    found = re.search(rf"{option}=\[?([\d,]+)", text)
    values = [int(each) for each in found[1].split(",")] if found else [64]
    x, y, z = (*values, 1, 1)[:3]
    x = min(x, most)
    y = min(y, most // x)
    return x, y, min(z, most // x // y)


def gpuverify(root: Path) -> Iterator[Case]:
    for source in sorted((root / "testsuite/CUDA").rglob("*.cu")):
        head = _head(source)
        wrong = head.lower().startswith("//xfail")
        if not wrong or "race" in f"{source}{head}":
            yield _checked("GPUVerify", source, _extents(head, "gridDim", 256), 64, wrong)


def faial(root: Path) -> Iterator[Case]:
    """Cases of one block, but for those that say otherwise."""
    places = ("examples/drf/*.cu", "tutorial/*.cu", "*.cu", "adding-assumptions/*.cu")
    for source in sorted(path for place in places for path in root.glob(place)):
        grid = (2, 1, 1) if "grid-level" in source.stem else (1, 1, 1)
        wrong = bool(re.search("racy|buggy|read-index$", source.stem))
        yield _checked("faial", source, grid, 32 if "warp" in source.stem else 64, wrong)


def _head(source: Path) -> str:
    return "\n".join(source.read_text(errors="replace").splitlines()[:5])


def _checked(suite: str, source: Path, grid: Dim3, threads: int, wrong: bool) -> Case:
    """A case of a suite whose tools read the source, so that nvcc must keep every access (-G)."""
    head = _head(source)
    block = _extents(head, "blockDim", 1024) if "blockDim" in head else (threads, 1, 1)
    bug = "race" if wrong else ""
    if any(re.search(of, str(source)) for of, _ in _RACY_TOO):
        bug = "by CUDA's model"
    numbers = [grid[0] * grid[1] * block[0] * block[1]]
    if wrong:
        numbers += [1, *map(int, re.findall(r"^//\w+ = (\d+)", head, re.MULTILINE))]
    options = ("-G", *re.findall(r"-D\S+", head))
    return Case(suite, bug, source, grid, block, options, tuple(numbers))


_SUITES: dict[str, Callable[[Path], Iterator[Case]]] = {
    "indigo/indigo_sources": indigo,
    "microbenchmarks/src": scor,
    "testsuite/CUDA": gpuverify,
    "examples/drf": faial,
    "adding-assumptions": faial,
}


def all_cases(roots: Iterable[Path]) -> list[Case]:
    return [
        case
        for root in roots
        for folder, cases_of in _SUITES.items()
        if (root / folder).is_dir()
        for case in cases_of(root.absolute())
    ]


def write_ignored(folder: Path) -> None:
    """The header that ``compiled`` includes first."""
    ignored = "".join(f"#define {word}(...) ((void)0)\n" for word in _IGNORED)
    (folder / "ignored.h").write_text(ignored)


def compiled(case: Case, folder: Path) -> Path | str:
    """The PTX, or why nvcc makes none."""
    target = folder / f"{case.suite}-{'-'.join(case.source.parts[-4:])}.ptx"
    if target.exists():
        return target
    options = [*case.options, "-include", str(folder / "ignored.h")]
    command = ["nvcc", "-ptx", "-arch=sm_80", *options, "-o", str(target), str(case.source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return target
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    return f"nvcc: {errors[0].rpartition('error')[2].strip(': ')}" if errors else "nvcc failed"


def argument_types(kernel: str) -> list[str]:
    """Types of a kernel's parameters, as far as its name says."""
    plain = subprocess.run(["c++filt", kernel], capture_output=True, text=True, check=True).stdout
    return [each.strip() for each in re.findall(r"[^(),]+", plain.strip().partition("(")[2])]


def small_numbers(place: int) -> np.ndarray:
    """The array behind a pointer."""
    return np.random.default_rng(place).integers(0, 64, 1 << 20).astype(np.int32)


def verdict(case: Case, ptx: Path | str) -> Verdict:
    """What the simulator sees in the kernels of a file, in both orders."""
    if isinstance(ptx, str):
        return Verdict(case, refused=ptx)
    try:
        text = ptx.read_text()
        simulator = Simulator(text, Path("/"), default_engine())
        kernels = simulator.declared.entries
        if not kernels:
            return Verdict(case, refused="no kernel: a template without instances, or unused")
        dynamic = DYNAMIC if ".extern .shared" in text else 0
        runs = product(kernels, case.numbers, (0, 1))
        outcomes = [_run(case, simulator, dynamic, *run) for run in runs]
    except RefusedProgram as error:
        return Verdict(case, refused=str(error))
    found = (each for outcome in outcomes for each in outcome.findings)
    return Verdict(case, tuple(each for each in found if each.kind in case.looks_for))


def _run(
    case: Case, simulator: Simulator, dynamic: int, kernel: str, number: int, turn: int
) -> SimOutcome:
    entry = simulator.declared.entries[kernel]
    types = argument_types(kernel)
    params, buffers = bytearray(entry.size), dict[int, np.ndarray]()
    allocations: list[Allocation] = []
    for place, param in enumerate(entry.params):
        type_, index = types[place] if place < len(types) else "", len(allocations)
        if param.size % 8 == 0 and type_ not in _NUMBERS:  # a pointer, or a struct of them
            given = index < len(case.inputs)
            array = case.inputs[index].copy() if given else small_numbers(index)
            address = 0x7F00_0000_0000 + (index << 32)
            buffers[index] = array.view(np.uint8)
            allocations.append(
                Allocation(name=f"argument {index}", address=address, size=array.nbytes)
            )
            value = address.to_bytes(8, "little") * (param.size // 8)
        elif type_ in ("float", "double"):
            value = np.array(1.5, type_.replace("float", "f4")).tobytes()
        else:
            value = (number % (1 << 8 * param.size)).to_bytes(param.size, "little")
        params[param.offset : param.offset + param.size] = value
    shape = {"grid": case.grid, "block": case.block, "shared_bytes": dynamic}
    launch = Launch(kernel=kernel, params=bytes(params), pointers=(), **shape)  # type: ignore[arg-type]
    plan = Plan(size=Size.of(), operations=(launch,), allocations=tuple(allocations))
    return simulator.run(plan, buffers, _LIMITS, initialised=buffers, turn=turn)


# --- what comes out


def rows(verdicts: list[Verdict]) -> Iterator[list[str]]:
    """Rows of the table, one for each suite and kind of bug."""
    for (suite, bug), group in groupby(verdicts, lambda each: (each.case.suite, each.case.bug)):
        of_kind = list(group)
        ran = [each for each in of_kind if not each.refused]
        counted = sum(bool(each.findings) for each in ran)
        counts = [counted, len(ran) - counted] if bug else ["", "", len(ran), counted]
        cells = [suite, bug or "none", len(of_kind), *counts]
        yield [*map(str, cells), *[""] * (7 - len(cells)), str(len(of_kind) - len(ran))]


def remarks(verdicts: list[Verdict]) -> Iterator[str]:
    """Every case that did not go as its suite says, and why."""
    for each in verdicts:
        case = each.case
        if each.refused:
            yield f"refused  {case.suite} {case.name}: {each.refused}"
        elif case.bug and not each.findings:
            yield f"missed   {case.suite} {case.name}: {_why(_REASONS, case)}"
        elif case.bug and (why := _why(_RACY_TOO, case)):
            yield f"racy too {case.suite} {case.name}: {why}"
        elif not case.bug and each.findings:
            yield f"false    {case.suite} {case.name}: {sentence(each.findings[0])}"


def _why(table: tuple[tuple[str, str], ...], case: Case) -> str:
    return next((why for of, why in table if re.search(of, str(case.source))), "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", type=Path, nargs="+", metavar="DIR")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    asked = parser.parse_args()
    cases = all_cases(asked.suites)
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.keep or Path(scratch)
        folder.mkdir(exist_ok=True)
        write_ignored(folder)
        with ThreadPoolExecutor() as pool:
            files = pool.map(lambda case: compiled(case, folder), cases)
            found = [verdict(case, ptx) for case, ptx in zip(cases, files, strict=True)]
    found.sort(key=lambda each: (each.case.suite, each.case.bug, each.case.name))
    header = ["suite", "bug", "cases", "found", "missed", "clean", "false", "refused"]
    print(machine(), "", table(header, list(rows(found))), "", *remarks(found), sep="\n")
    return int(any(each.findings for each in found if not each.case.bug))


if __name__ == "__main__":
    sys.exit(main())
