"""``grade doctor``: what works on this machine, and the command that fixes what does not.

The checks fill the caches: they compile the grader's own C++ if needed.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from grader import base
from grader.build import find_toolchain, runtime_folder
from grader.cli.chosen_lab import find_starter
from grader.cli.console import DONE, FAULT, say, spoken
from grader.cli.defaults import FILE, VARIABLES, read_defaults
from grader.cli.devices import install
from grader.cli.options import OptionGroup, option
from grader.judge import GradingContext, grade
from grader.labs import Case, load_lab
from grader.report import measurements, sentence
from grader.results import Result
from grader.run import (
    engine_library,
    first_gpu_arch,
    gpu_names,
    portable_engine,
    quietly,
    recorder,
)
from grader.sandbox import Obstacle, Sandbox, without_bubblewrap, without_landlock
from grader.study import OWN_PROGRAMS
from ptxsim import LEVELS, load_engine
from ptxsim.plan import Record, Size
from ptxsim.text import NOTHING, Message, clauses, listed, phrase, verbatim

_HOLDS = {
    "bubblewrap": verbatim("bubblewrap"),
    "landlock": phrase("Landlock; SECURITY.md says what bubblewrap would add"),
    "rlimits": phrase("limits only: a submission's code can read what you can read"),
}
_BETTER: dict[str, dict[str, Callable[[], Obstacle]]] = {
    "bubblewrap": {},
    "landlock": {"bubblewrap": without_bubblewrap},
    "rlimits": {"bubblewrap": without_bubblewrap, "Landlock": without_landlock},
}
_AGAIN = phrase("fix what is missing above, then: grade doctor")


class MachineCheck(Record):
    """One row of the table."""

    name: Message
    found: tuple[Message, ...]  # lines: what is there, or what is missing
    ok: bool = True
    needed: bool = False  # without it nothing can be graded here
    remedy: Message = NOTHING  # a command; empty when ok


class DoctorOptions(OptionGroup):
    """See what works on this machine, and get the command that fixes what does not."""

    prepare: Path | None = option(
        "compile the grader's own C++ into DIR, for other users and machines; jobs of slurm/ "
        "find it by GRADE_PREPARED, other commands by SGEMM_GRADER_PREPARED",
        "DIR",
    )


def run(chosen: DoctorOptions, console: Console) -> int:
    say(console, phrase("the first time on a machine, this compiles for about a minute"))
    if chosen.prepare is not None:
        _prepare(chosen.prepare)
    checks = tuple(_checks())
    console.print(_lines(checks, spoken(console)), soft_wrap=True)
    return FAULT if any(check.needed and not check.ok for check in checks) else DONE


def _prepare(folder: Path) -> None:
    """Compile all parts for every CPU; what the checks compile goes there, too."""
    folder.mkdir(parents=True, exist_ok=True)  # not private, as a cache is
    os.environ[base.CACHE_VARIABLE] = os.environ[base.PREPARED_VARIABLE] = str(folder.absolute())
    for part in (*map(portable_engine, LEVELS), *OWN_PROGRAMS):
        part.compiled()


def _lines(checks: tuple[MachineCheck, ...], language: base.Language) -> Text:
    """Each item with its state, and a remedy under what is missing: a command on one line."""
    states = {
        check: (phrase("ok"), "green")
        if check.ok
        else (phrase("missing"), "bold red")
        if check.needed
        else (verbatim("-"), "yellow")
        for check in checks
    }
    first = max(cell_len(language(check.name)) for check in checks)
    second = max(cell_len(language(state)) for state, _ in states.values())
    lines = Text()
    for check, (state, style) in states.items():
        lines.append(set_cell_size(language(check.name), first + 2))
        lines.append(set_cell_size(language(state), second + 2), style=style)
        margin = "\n" + " " * (first + second + 4)
        lines.append(margin.join(map(language, check.found)))
        if check.remedy:
            lines.append(margin + language(check.remedy), style="bold")
        lines.append("\n")
    lines.rstrip()
    return lines


def _checks() -> Iterator[MachineCheck]:
    """A fault becomes a row; nothing raises."""
    version = verbatim(platform.python_version())
    yield MachineCheck(name=verbatim("Python"), needed=True, found=(version,))
    yield _attempt(
        phrase("C++ compiler"),
        lambda: (verbatim(str(base.find_host_compiler())),),
        phrase("{command} (as root)", command="apt-get install g++"),
    )
    yield _attempt(verbatim("nvcc"), _nvcc)
    yield _attempt(phrase("cache folder"), _cache)
    yield _attempt(phrase("recorder"), lambda: _made(recorder().compiled()), _AGAIN)
    yield _attempt(phrase("whole programs"), lambda: _made(runtime_folder()), _AGAIN)
    yield _attempt(
        phrase("simulator"), lambda: _made(load_engine(engine_library().compiled())), _AGAIN
    )
    yield from _sandboxes()
    try:
        tools = find_toolchain()
        nvdisasm, cute = tools.nvdisasm, tools.cutlass_include
    except base.GraderError:
        nvdisasm = cute = None
    yield _optional(verbatim("nvdisasm"), nvdisasm, install())
    yield _optional(phrase("CuTe headers"), cute, install("cutlass"))
    yield _defaults()
    names = ", ".join(gpu_names())
    simulated = phrase("none: kernels are simulated")
    yield _optional(verbatim("NVIDIA GPU"), names, NOTHING, simulated)
    if names:
        yield from _gpu_checks()


def _defaults() -> MachineCheck:
    """The course's own options."""
    name, found = phrase("defaults"), read_defaults(os.environ, Path.cwd()).values()
    lines = [verbatim(f"--{each.name} {each.value} ({each.origin})") for each in found]
    none = phrase("the grader's own; {file} or {variables} can set others", file=FILE)
    none = none.given(variables=", ".join(VARIABLES.values()))
    return MachineCheck(name=name, found=tuple(lines or [none]))


def _gpu_checks() -> Iterator[MachineCheck]:
    """CuPy and NVML, then a small grade of starter/ on the GPU, which uses all of it."""
    extra = phrase("{command} (cuda12 for a driver of CUDA 12)", command=install("cuda13"))
    yield _optional(verbatim("CuPy"), _version("cupy-cuda13x") or _version("cupy-cuda12x"), extra)
    yield _optional(verbatim("NVML"), _version("nvidia-ml-py"), extra)
    if importlib.util.find_spec("cupy") is None:
        return
    name, remedy = phrase("GPU self-test"), verbatim("nvidia-smi")
    try:
        result = _self_test()
    except base.GraderError as error:
        yield MachineCheck(name=name, ok=False, found=(error.message,), remedy=remedy)
        return
    gpu = result.environment.gpu
    if gpu:
        facts = [phrase("driver {version}", version=gpu.driver)]
        facts.append(phrase("up to {clock} MHz", clock=gpu.sm_clock_mhz))
        if gpu.fp32_peak_tflops:
            peak = phrase("FP32 peak {speed:.1f} {unit}")
            facts.append(peak.given(speed=gpu.fp32_peak_tflops, unit=base.gpus.PEAK_UNIT))
        yield MachineCheck(name=verbatim("CUDA"), found=(listed(facts),))
    timed = [sentence(measured, result.problem, gpu) for measured in measurements(result)]
    ok = result.verdict is base.Verdict.AC
    # The message names the cause: another process, MPS, an old driver, too little memory.
    found = clauses([result.error or verbatim(result.verdict.value), *timed])
    yield MachineCheck(name=name, ok=ok, found=(found,), remedy=NOTHING if ok else remedy)


def _self_test() -> Result:
    """Grade starter/ at a few sizes. Raises GraderError if grading cannot even start."""
    lab = load_lab()
    size = Size(dims={dim.name: 1024 for dim in lab.problem.dims})
    case = Case(id="performance-0", size=size)
    small = msgspec.structs.replace(
        lab, correctness=lab.correctness[:3], performance=(case,), cpu=lab.cpu[:1]
    )
    context = GradingContext(
        lab=small,
        toolchain=find_toolchain(first_gpu_arch() or "sm_80"),
        sandbox=Sandbox.open("auto"),
        gpu_arch=first_gpu_arch(),
    )
    return grade(find_starter(Path.cwd(), lab), context, quietly).result


def _version(package: str) -> str | None:
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return None


def _attempt(
    name: Message, look: Callable[[], tuple[Message, ...]], remedy: Message = NOTHING
) -> MachineCheck:
    try:
        return MachineCheck(name=name, needed=True, found=look())
    except base.GraderError as error:
        return MachineCheck(name=name, ok=False, needed=True, found=(error.message,), remedy=remedy)


def _optional(
    name: Message, found: Path | str | None, remedy: Message, missing: Message | None = None
) -> MachineCheck:
    if found:
        return MachineCheck(name=name, found=(verbatim(str(found)),))
    what = missing or phrase("not installed")
    return MachineCheck(name=name, ok=False, found=(what,), remedy=remedy)


def _made(_part: object) -> tuple[Message, ...]:
    return (phrase("compiled"),)


def _nvcc() -> tuple[Message, ...]:
    toolchain = find_toolchain(first_gpu_arch() or "sm_80")
    found = phrase("{version} from {origin}: {nvcc}", nvcc=str(toolchain.nvcc))
    found = found.given(version=toolchain.cuda_version, origin=toolchain.origin)
    return found, *(phrase("passed over: {what}", what=each) for each in toolchain.passed_over)


def _cache() -> tuple[Message, ...]:
    found = phrase("{folder}, {most:g} GB of builds at most", folder=str(base.cache_folder()))
    return (found.given(most=base.cache_limit() / 1e9),)


def _sandboxes() -> Iterator[MachineCheck]:
    """Why each one that would be better than the one at hand does not work, and what fixes it."""
    name = phrase("sandbox")
    try:
        kind = Sandbox.open("auto").kind
    except base.GraderError as error:
        yield MachineCheck(name=name, ok=False, needed=True, found=(error.message,), remedy=_AGAIN)
        return
    yield MachineCheck(name=name, ok=kind != "rlimits", found=(_HOLDS[kind],))
    for missing, cause in _BETTER[kind].items():
        why, better = cause(), verbatim(missing)
        yield MachineCheck(name=better, ok=False, found=(why.what,), remedy=why.remedy)
