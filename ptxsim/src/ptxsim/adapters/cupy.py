"""Kernels of CuPy: NVRTC or nvcc makes their PTX, as CuPy calls them."""

from __future__ import annotations

import re
from typing import Any

import cupy
from cupy._core.core import assemble_cupy_compiler_options
from cupy.cuda.compiler import _NVRTCProgram, compile_using_nvcc

from ptxsim.launching import Module


def module(raw: cupy.RawKernel | cupy.RawModule, capability: int = 80, **options: Any) -> Module:
    """``module(raw).kernel("name")[grid, block](…)`` for a RawKernel or RawModule with a source.
    options: ``Module``'s. Raises CuPy's CompileException for a source that does not compile."""
    flags = ("-lineinfo", "-ftz=true", *assemble_cupy_compiler_options(raw.options))
    name = "source.cu"
    if raw.backend == "nvcc":
        ptx = compile_using_nvcc(raw.code, flags, capability, name, "ptx")
    else:
        expressions = getattr(raw, "name_expressions", None)
        program = _NVRTCProgram(raw.code, name, name_expressions=expressions)
        own = ("--device-as-default-execution-space", f"-arch=compute_{capability}")
        ptx, _ = program.compile(flags + own)
    text = re.sub(f'"/[^"\n]*/{name}"', f'"{name}"', ptx.decode("latin-1"))  # its folder is gone
    return Module(text, sources={name: raw.code}, **options)
