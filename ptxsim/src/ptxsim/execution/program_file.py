"""What kind of program a file is, as readelf tells it."""

import os
import platform
import re
from pathlib import Path

from ptxsim.execution.building import LIBRARY
from ptxsim.native import answer_of
from ptxsim.nvcc import CompileError

_BUILD = "build it by ptxsim nvcc, with nvcc's options"
_MACHINES = {"x86_64": "Advanced Micro Devices X86-64", "aarch64": "AArch64"}


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
