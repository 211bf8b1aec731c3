"""Calls that are not simulated, with their lines, as a linker or a finished program shows them."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ptxsim.execution.host_code import HostCode
from ptxsim.native import answer_of
from ptxsim.nvcc import CompileError

_NAME = r"(?:__)?cu(?:da|blas|blasLt|rand|fft|sparse|solver\w\w)?[A-Z]\w+"
_UNDEFINED = re.compile(
    rf"^(?:\S*ld: )?(?:(\S+):([0-9]+): |\S+: )undefined reference to `({_NAME})'", re.MULTILINE
)
_SYMBOL = re.compile(rf" ({_NAME})(?:@|$)", re.MULTILINE)
_CALL = re.compile(rf"^ *([0-9a-f]+):.*<({_NAME})@plt>", re.MULTILINE)


def said_by_linker(text: str) -> str:
    """The missing calls, a line each; empty: the linker complains of something else."""
    return _said(
        (f"{os.path.relpath(file)}:{line}" if file else "", name)
        for file, line, name in _UNDEFINED.findall(text)
    )


def check_calls(program: Path, library: Path) -> None:
    """Look for what ``program`` wants of CUDA's libraries and ``library`` has not. Raises
    CompileError."""
    wanted, there = (
        set(_SYMBOL.findall(answer_of(["nm", "-D", f"--{kind}-only", file]).stdout))
        for kind, file in (("undefined", program), ("defined", library))
    )
    if missing := wanted - there:
        raise CompileError(_said(_calls(program, missing)))


def _calls(program: Path, missing: set[str]) -> Iterator[tuple[str, str]]:
    host = HostCode(program)
    code = answer_of(["objdump", "-d", "--no-show-raw-insn", program]).stdout
    seen = [(int(at, 16), name) for at, name in _CALL.findall(code) if name in missing]
    host.place([at + 1 for at, _ in seen])  # all at once
    for at, name in seen:
        place = host.place([at + 1])
        yield f"{place.file}:{place.line}" if place else "", name
    for name in sorted(missing - {name for _, name in seen}):
        yield "", name


def _said(calls: Iterable[tuple[str, str]]) -> str:
    lines = [f"{place}{': ' * bool(place)}{name} is not simulated" for place, name in calls]
    return "\n".join(dict.fromkeys(lines))
