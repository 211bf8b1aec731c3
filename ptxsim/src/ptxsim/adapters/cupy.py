"""Kernels of CuPy: NVRTC makes their PTX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cupy
from cupy_backends.cuda.libs import nvrtc

from ptxsim.launching import Module

_HEADERS = Path(cupy.__file__).parent / "_core" / "include"


def module(raw: cupy.RawKernel | cupy.RawModule, capability: int = 80, **options: Any) -> Module:
    """``module(raw).kernel("name")[grid, block](…)`` for a RawKernel or RawModule with a source.
    options: ``Module``'s. Raises NVRTCError for a source that does not compile."""
    name = "source.cu"
    program = nvrtc.createProgram(raw.code, name, (), ())
    try:
        for each in getattr(raw, "name_expressions", None) or ():
            nvrtc.addNameExpression(program, each)
        flags = (f"-arch=compute_{capability}", "-lineinfo", f"-I{_HEADERS}", *raw.options)
        nvrtc.compileProgram(program, flags)
        ptx = nvrtc.getPTX(program).decode("latin-1")
    finally:
        nvrtc.destroyProgram(program)
    return Module(ptx, sources={name: raw.code}, **options)
