"""The lowest rung: the three loops on the CPU, timed by the reference's own program.

``reference/sgemm/00_host/host.cpp`` is ours and compiled with the host compiler. ``host N`` prints
one line for each version of the loops, such as ``plain  1.23 GFLOPS  1.75 s``.
"""

import platform
import re
import subprocess
from contextlib import suppress
from pathlib import Path

from grader.base import MachineError, Native, Rejected, gpus
from grader.judge import GradingContext, prepare
from grader.labs import Submission
from grader.results import Ceiling, HostLoop, HostRun
from grader.study.explaining import explain_program
from ptxsim import answer_of

EDGE = 1024  # of the product; larger ones reveal no more about a CPU and take minutes
_SECONDS = 60
_LINE = re.compile(r"\s*(?P<name>\S.*?)\s*:?\s+(?P<rate>\d+(?:\.\d+)?)\s*GFLOPS.*")


def run_host(reference: Path) -> HostRun | None:
    """Compile the program, if the reference has one, and let it time its loops.

    Raises ToolchainError when it does not compile, MachineError when it does not answer.
    """
    source = reference / "00_host" / "host.cpp"
    if not source.is_file():
        return None
    program = Native(name="host", sources=(source,), shared=False, flags=("-O3",))
    try:
        done = answer_of([program.compiled(), str(EDGE)], timeout=_SECONDS)
        done.check_returncode()
    except (subprocess.SubprocessError, OSError) as error:
        raise MachineError.saying("{source}: {why}", source=str(source), why=str(error)) from None
    loops = tuple(
        HostLoop(name=match["name"], gflops=float(match["rate"]))
        for line in done.stdout.splitlines()
        if (match := _LINE.fullmatch(line))
    )
    if not loops:
        raise MachineError.saying(
            "{source}: printed no line such as 'plain 1.23 GFLOPS'", source=str(source)
        )
    return HostRun(cpu=_cpu(), n=EDGE, loops=loops)


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


_UNTIMED = ("A100 80GB PCIe", "RTX 2080 Ti")  # the lab's own; a course has one of them


def ceilings(submission: Submission, context: GradingContext) -> tuple[Ceiling, ...]:
    """Ceilings at the lab's largest timed size, for each GPU that the submission compiles for."""
    size = max((case.size for case in context.lab.performance), key=context.lab.problem.work)
    found: list[Ceiling] = []
    for card in (each for each in gpus.known() if each.name in _UNTIMED):
        arch = f"sm_{card.capability}"
        with suppress(Rejected):
            why = explain_program(prepare(submission, [size], context, arch), card)
            found += (
                Ceiling(gpu=card.name, arch=arch, size=size.dims, speed=bound.ceiling)
                for bound in why.bounds
                if bound.most
            )
    return tuple(found)
