"""The lowest rung: the three loops on the CPU, timed by the reference's own program.

``reference/sgemm/00_host/host.cpp`` is ours and compiled with the host compiler. ``host N`` prints
one line for each version of the loops, such as ``plain  1.23 GFLOPS  1.75 s``.
"""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

from grader.errors import MachineError
from grader.ladder.document import HostLoop, HostRun
from grader.model import phrase
from grader.toolchain.native import compile_native

EDGE = 1024  # of the product; larger ones reveal no more about a CPU and take minutes
_FLAGS = ("-O3",)
_SECONDS = 60
_LINE = re.compile(r"\s*(?P<name>\S.*?)\s*:?\s+(?P<rate>\d+(?:\.\d+)?)\s*GFLOPS.*")


def run_host(reference: Path) -> HostRun | None:
    """Compile the program and let it time its loops; None when the reference has none.

    Raises ToolchainError when it does not compile, MachineError when it does not answer.
    """
    source = reference / "00_host" / "host.cpp"
    if not source.is_file():
        return None
    program = compile_native("host", [source], shared=False, flags=_FLAGS)
    try:
        answer = subprocess.run(
            [program, str(EDGE)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=True,
        ).stdout
    except (subprocess.SubprocessError, OSError) as error:
        raise MachineError(phrase("{source}: {why}", source=str(source), why=str(error))) from None
    loops = tuple(
        HostLoop(name=match["name"], gflops=float(match["rate"]))
        for line in answer.splitlines()
        if (match := _LINE.fullmatch(line))
    )
    if not loops:
        raise MachineError(
            phrase("{source}: printed no line such as 'plain 1.23 GFLOPS'", source=str(source))
        )
    return HostRun(cpu=_cpu(), n=EDGE, loops=loops)


def _cpu() -> str:
    """The processor's name."""
    for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
