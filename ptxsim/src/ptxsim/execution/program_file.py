"""Programs as linkers and readelf show them: whether ptxsim can stand in for what they call."""

import os
import platform
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ptxsim.execution.host_code import HostCode
from ptxsim.native import answer_of
from ptxsim.nvcc import CompileError

LIBRARY = "libcudart.so.13"  # that ptxsim stands in for
_BUILD = "build it by ptxsim nvcc, with nvcc's options"
_MACHINES = {"x86_64": "Advanced Micro Devices X86-64", "aarch64": "AArch64"}
_NAME = r"(?:__)?cu(?:da|blas|blasLt|rand|fft|sparse|solver\w\w)?[A-Z]\w+"
_UNDEFINED = re.compile(
    rf"^(?:\S*ld: )?(?:(\S+):([0-9]+): |\S+: )undefined reference to `({_NAME})'", re.MULTILINE
)
_SYMBOL = re.compile(rf" ({_NAME})(?:@|$)", re.MULTILINE)
_CALL = re.compile(rf"^ *([0-9a-f]+):.*<({_NAME})@plt>", re.MULTILINE)


def check_program(program: Path) -> None:
    """Raise CompileError, which says what the file is, unless ptxsim can stand in for its device;
    OSError if it cannot be read."""
    program.stat()
    told = answer_of(["readelf", "-hdSW", program], env={**os.environ, "LC_ALL": "C"}).stdout
    machine = re.search(r"^ *Machine: +(.+)", told, re.MULTILINE)
    needed = {*re.findall(r"\(NEEDED\).*\[(.+)\]", told)}
    others = sorted(each for each in needed if each.startswith("libcudart.so"))
    if machine is None:
        why = f"not a program of this system; give sources of CUDA, or {_BUILD}"
    elif machine[1] != _MACHINES.get(platform.machine(), machine[1]):
        why = f"a program for another machine ({machine[1]}): {_BUILD}, here"
    elif needed & {LIBRARY, "libcuda.so.1"}:
        return
    elif others:
        why = f"linked with {others[0]}, and ptxsim stands in for {LIBRARY}: {_BUILD}"
    elif re.search(r"\.nv_fatbin|__nv_relfatbin", told):
        why = f"linked with CUDA's static runtime, as nvcc does without -cudart shared: {_BUILD}"
    else:
        why = f"not a CUDA program: it has no kernels, and not linked with {LIBRARY}"
    raise CompileError(f"{program}: {why}")


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
