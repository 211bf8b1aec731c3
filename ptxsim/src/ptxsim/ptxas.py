"""Figures of kernels that PTX does not have, and ptxas tells."""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ptxsim.native import answer_of
from ptxsim.nvcc import cuda_program

_KERNEL = re.compile(
    r"Compiling entry function '(.+?)'.*\n.*\n +([0-9]+) bytes stack frame.*\n.*Used ([0-9]+) reg"
)
_CONSTANTS = re.compile(r"([0-9]+) bytes cmem\[3\]")
_TARGET = re.compile(r"^\.target sm_([0-9]+)(\w?)", re.MULTILINE)
_OLDEST = 80  # of the architectures that ptxsim says its device has


class KernelFigures(NamedTuple):
    registers: int = 32  # of a thread; where nobody knows, as here, more would be a guess
    local_bytes: int = 0  # of a thread
    constant_bytes: int = 0  # of its module


def measured(texts: Sequence[str]) -> dict[str, KernelFigures]:
    """Figures of the kernels of these modules, by mangled name; none of those that ptxas does not
    compile."""
    ptxas = cuda_program("ptxas")
    found: dict[str, KernelFigures] = {}
    for text in texts:
        if ptxas is None:
            break
        target = _TARGET.search(text)
        newer = target and int(target[1]) > _OLDEST
        arch = f"sm_{target[1]}{target[2]}" if target and newer else f"sm_{_OLDEST}"
        with tempfile.TemporaryDirectory(prefix="ptxsim-") as folder:
            module = Path(folder) / "module.ptx"
            module.write_text(text, encoding="latin-1")
            options = ("-v", "-c", f"-arch={arch}", "-o", Path(folder) / "module.cubin")
            said = answer_of([ptxas, *options, module]).stderr
        constants = _CONSTANTS.search(said)
        size = int(constants[1]) if constants else 0
        for name, local, registers in _KERNEL.findall(said):
            found[name] = KernelFigures(int(registers), int(local), size)
    return found
