"""``grade doctor``: what works on this machine, and the command that fixes what does not.

The checks fill the caches: they compile the grader's own C++ if needed.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from rich import box
from rich.table import Table
from rich.text import Text

from grader.backends.probe import first_gpu_arch, gpu_names
from grader.backends.simulator.engine_library import engine_library
from grader.cli.installing import install
from grader.cli.scaffold import find_starter
from grader.errors import GraderError
from grader.grading.pipeline import Bench, grade
from grader.hardware.gpus import PEAK_UNIT
from grader.labs.lab import Case, load_lab
from grader.model import Record, Result, Size, Verdict
from grader.record.recorder_process import prepare_recorder
from grader.report.measurement import measurements, sentence
from grader.sandbox.causes import Cause, without_bubblewrap, without_landlock
from grader.sandbox.running import Sandbox
from grader.toolchain.discovery import find_toolchain
from grader.toolchain.host_compiler import find_host_compiler
from grader.toolchain.native import cache_folder, cache_limit
from ptxsim.engine import load_engine

_HOLDS = {
    "bubblewrap": "bubblewrap",
    "landlock": "Landlock; SECURITY.md says what bubblewrap would add",
    "rlimits": "limits only: a submission's code can read what you can read",
}
_BETTER: dict[str, dict[str, Callable[[], Cause]]] = {
    "bubblewrap": {},
    "landlock": {"bubblewrap": without_bubblewrap},
    "rlimits": {"bubblewrap": without_bubblewrap, "Landlock": without_landlock},
}


class Check(Record):
    """One row of the table."""

    name: str
    ok: bool
    needed: bool  # without it nothing can be graded here
    found: str  # what is there, or what is missing
    remedy: str  # a command; "" when ok


def examine() -> tuple[Check, ...]:
    """Run all checks. A fault becomes a row; nothing raises."""
    return tuple(_checks())


def render(checks: tuple[Check, ...]) -> Table:
    """The table, with a remedy under each missing item."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        missing = Text("missing", style="bold red") if check.needed else Text("-", style="yellow")
        words = Text(check.found)
        if check.remedy:
            words.append(f"\n{check.remedy}", style="bold")
        table.add_row(check.name, Text("ok", style="green") if check.ok else missing, words)
    return table


def _checks() -> Iterator[Check]:
    yield Check(name="Python", ok=True, needed=True, found=platform.python_version(), remedy="")
    yield _attempt(
        "C++ compiler", lambda: str(find_host_compiler()), "apt-get install g++ (as root)"
    )
    yield _attempt("nvcc", _nvcc, f"{install()} (installs nvcc)")
    yield _attempt(
        "cache folder",
        lambda: f"{cache_folder()}, {cache_limit() / 1e9:g} GB of builds at most",
        "set SGEMM_GRADER_CACHE",
    )
    yield _attempt("recorder", _recorder, "fix what is missing above, then: grade doctor")
    yield _attempt("simulator", _simulator, "fix what is missing above, then: grade doctor")
    yield from _sandboxes()
    yield _optional("nvdisasm", _nvdisasm(), install())
    yield _optional("CuTe headers", _cute(), install("cutlass"))
    names = ", ".join(gpu_names())
    yield _optional("NVIDIA GPU", names, "", "none: kernels are simulated")
    if names:
        yield from _gpu_checks()


def _gpu_checks() -> Iterator[Check]:
    """CuPy and NVML, then a small grade of starter/ on the GPU, which uses all of it."""
    extra = f"{install('cuda13')} (cuda12 for a driver of CUDA 12)"
    yield _optional("CuPy", _version("cupy-cuda13x") or _version("cupy-cuda12x"), extra)
    yield _optional("NVML", _version("nvidia-ml-py"), extra)
    if importlib.util.find_spec("cupy") is None:
        return
    try:
        result = _self_test()
    except GraderError as error:
        found = str(error)
        yield Check(name="GPU self-test", ok=False, needed=False, found=found, remedy="nvidia-smi")
        return
    gpu = result.environment.gpu
    if gpu:
        peak = f", FP32 peak {gpu.fp32_peak_tflops:.1f} {PEAK_UNIT}" if gpu.fp32_peak_tflops else ""
        found = f"driver {gpu.driver}, up to {gpu.sm_clock_mhz} MHz{peak}"
        yield Check(name="CUDA", ok=True, needed=False, found=found, remedy="")
    timed = [str(sentence(measured, result.problem, gpu)) for measured in measurements(result)]
    ok = result.verdict is Verdict.AC
    found = "; ".join([str(result.error or result.verdict.value), *timed])
    # The message names the cause: another process, MPS, an old driver, too little memory.
    yield Check(
        name="GPU self-test", ok=ok, needed=False, found=found, remedy="" if ok else "nvidia-smi"
    )


def _self_test() -> Result:
    """Grade starter/ at a few sizes. Raises GraderError if grading cannot even start."""
    lab = load_lab()
    size = Size(dims={dim.name: 1024 for dim in lab.problem.dims})
    case = Case(id="performance-0", size=size)
    small = msgspec.structs.replace(
        lab, correctness=lab.correctness[:3], performance=(case,), cpu=lab.cpu[:1]
    )
    bench = Bench(
        lab=small,
        toolchain=find_toolchain(first_gpu_arch() or "sm_80"),
        sandbox=Sandbox.open("auto"),
        gpu_arch=first_gpu_arch(),
        explain=False,
    )
    return grade(find_starter(Path.cwd(), lab), bench, lambda _stage, _detail: None).result


def _version(package: str) -> str | None:
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return None


def _attempt(name: str, look: Callable[[], str], remedy: str) -> Check:
    try:
        return Check(name=name, ok=True, needed=True, found=look(), remedy="")
    except GraderError as error:
        return Check(name=name, ok=False, needed=True, found=str(error), remedy=remedy)


def _optional(name: str, found: str | None, remedy: str, missing: str = "not installed") -> Check:
    ok = bool(found)
    return Check(
        name=name, ok=ok, needed=False, found=found or missing, remedy="" if ok else remedy
    )


def _nvcc() -> str:
    toolchain = find_toolchain(first_gpu_arch() or "sm_80")
    found = f"{toolchain.cuda_version} from {toolchain.origin}: {toolchain.nvcc}"
    return "\n".join([found, *(f"passed over: {sentence}" for sentence in toolchain.passed_over)])


def _recorder() -> str:
    prepare_recorder(find_toolchain())
    return "compiled"


def _simulator() -> str:
    load_engine(engine_library().compiled())
    return "compiled"


def _sandboxes() -> Iterator[Check]:
    """Why each one that would be better than the one at hand does not work, and what fixes it."""
    try:
        kind = Sandbox.open("auto").kind
    except GraderError as error:
        remedy = "fix what is missing above, then: grade doctor"
        yield Check(name="sandbox", ok=False, needed=True, found=str(error), remedy=remedy)
        return
    yield Check(name="sandbox", ok=kind != "rlimits", needed=False, found=_HOLDS[kind], remedy="")
    for missing, cause in _BETTER[kind].items():
        why = cause()
        yield Check(name=missing, ok=False, needed=False, found=why.what, remedy=why.remedy)


def _nvdisasm() -> str | None:
    try:
        path = find_toolchain().nvdisasm
    except GraderError:
        return None
    return str(path) if path else None


def _cute() -> str | None:
    try:
        path = find_toolchain().cutlass_include
    except GraderError:
        return None
    return str(path) if path else None
