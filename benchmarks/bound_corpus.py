"""The kernels of ``benchmarks.bound_h200`` that are no rungs: patterns that tutorials teach.

``bound_patterns/patterns.txt`` names each with its source and parameters, which become macros. All
take sizes that are multiples of 128. ``prepared`` does what needs no GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from grader.backends.simulator.device import CpuDevice, read_declarations
from grader.compile.building import compile_submission
from grader.errors import Rejected
from grader.hardware import gpus
from grader.labs.lab import Limits
from grader.model import Bound, Mnk, Plan, Record
from grader.performance.explanation import explain_speed
from grader.performance.sass import disassemble
from grader.record.recording import record_plans
from grader.sandbox.running import Sandbox
from grader.submission.folder import load_submission
from grader.toolchain.discovery import find_toolchain

FOLDER = Path(__file__).parent / "bound_patterns"


class Ready(Record):
    name: str
    corpus: bool
    cubin: str
    plan: Plan
    bound: Bound


class Pattern(Record):
    """One kernel of the corpus."""

    name: str
    source: str  # without ".cu"
    parameters: tuple[str, ...]  # "BM=64"

    def write(self, folder: Path) -> Path:
        """A submission folder with its source."""
        defines = "".join(f"#define {each.replace('=', ' ')}\n" for each in self.parameters)
        target = folder / self.name
        target.mkdir(parents=True, exist_ok=True)
        text = (FOLDER / f"{self.source}.cu").read_text()
        # The header comes first, so that no macro meets its names.
        (target / "sgemm.cu").write_text(f'#include "gemm.cuh"\n{defines}#line 1\n{text}')
        return target


def patterns() -> Iterator[Pattern]:
    """Raises ValueError with a line that is none."""
    for line in (FOLDER / "patterns.txt").read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, rest = line.partition(":")
        source, *parameters = rest.split() or [""]
        if not colon or not (FOLDER / f"{source}.cu").is_file():
            raise ValueError(f"not a pattern: {line}")
        yield Pattern(name=name.strip(), source=source, parameters=tuple(parameters))


def prepared(folder: Path, n: int, arch: str, card: gpus.Gpu, corpus: bool) -> Ready | None:
    """Built, recorded and bounded; None when it cannot be."""
    toolchain, sandbox = find_toolchain(), Sandbox.open("auto")
    submission = load_submission(folder)
    size = Mnk(m=n, n=n, k=n)
    try:
        built = compile_submission(
            submission, toolchain, sandbox, arch=arch, compile_s=120, memory_mb=8192
        )
    except Rejected:
        return None
    declared = read_declarations(built, str(folder), sandbox)
    (plan,) = record_plans(
        built,
        submission,
        [size],
        toolchain,
        sandbox,
        declared=declared,
        record_s=20,
        memory_mb=4096,
    )
    if not isinstance(plan, Plan):
        return None
    with CpuDevice(sandbox, Limits(memory_mb=16384)) as simulator:
        why = explain_speed(
            built,
            str(folder),
            plan,
            partial(disassemble, built.cubin, toolchain, sandbox),
            simulator,
            gpu=card,
        )
    if not why.bounds:
        return None
    return Ready(
        name=folder.name,
        corpus=corpus,
        cubin=str(built.cubin),
        plan=plan,
        bound=why.bounds[0],
    )
