"""Kernels of CuPy, Numba and Triton, with the real packages where they are installed."""

import sys
from importlib import import_module, util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from harness import engine
from ptxsim import Output
from ptxsim.nvcc import CompileError
from ptxsim.report import Report

SCALE = """
#include <cupy/complex.cuh>
template <typename T> inline constexpr bool number = false;
template <> inline constexpr bool number<float> = true;
__device__ complex<float> times(complex<float> z, float f) { return z * f; }
extern "C" __global__ void scale(const float* x, float* y, float f) {
  static_assert(number<float> && __cplusplus == 201703L);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = times(x[i], f).real();  // no check
}
"""
ADD = """
import triton
import triton.language as tl

@triton.jit
def scale(x, y, f, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, f * tl.load(x + i))  # no check
"""
NUMBA = """
from numba import cuda

@cuda.jit
def times(f, x):
    return f * x

def scale(x, y, f):
    i = cuda.grid(1)
    y[i] = times(f, x[i])  # no check
"""


def kernel(package: str, capability: int, folder: Path) -> Any:
    """Calls ``scale`` for x, y and f in two blocks of 128 threads."""
    own = pytest.importorskip(package, reason=f"{package} is not installed: no kernel to run")
    pytest.importorskip(f"ptxsim.adapters.{package}")
    adapter = import_module(f"ptxsim.adapters.{package}")
    options = {"capability": capability, "engine": engine()}
    if package == "cupy":
        raw = own.RawKernel(SCALE, "scale", backend={80: "nvrtc", 90: "nvcc"}[capability])
        return adapter.module(raw, **options).kernel("scale")[2, 128]
    file = folder / "kernels.py"
    file.write_text(ADD if package == "triton" else NUMBA)
    spec = util.spec_from_file_location("kernels", file)
    assert spec and spec.loader
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if package == "numba":
        types = (own.float32[::1], own.float32[::1], own.float32)
        return adapter.kernel(module.scale, types, **options)[2, 128]
    types = {"x": "*fp32", "y": "*fp32", "f": "fp32"}
    return adapter.kernel(module.scale, types, {"BLOCK": 128}, **options)[2]


@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("package", ["cupy", "numba", "triton"])
def test_kernels_of_other_packages(package: str, capability: int, tmp_path: Path) -> None:
    launch = kernel(package, capability, tmp_path)
    x, y = np.arange(256, dtype=np.float32), np.empty(256, np.float32)
    report: Report = launch(x, Output(y), 2)
    assert report.clean and (y == 2 * x).all()
    said = str(launch(x[:200], Output(y[:200]), 2.0))
    assert "argument " in said and "[200], just past the end of the 800-byte" in said
    assert "> " in said and "no check" in said  # its own source


def test_what_numba_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_given: object, **_options: object) -> None:
        raise pathfinder.DynamicLibNotFoundError("no libnvrtc.so.13\nlibnvvm.so.4")

    pathfinder = ModuleType("cuda.pathfinder")
    pathfinder.DynamicLibNotFoundError = type("DynamicLibNotFoundError", (RuntimeError,), {})
    numba, dispatcher = ModuleType("numba"), ModuleType("numba.cuda.dispatcher")
    numba.cuda = ModuleType("numba.cuda")
    numba.cuda.compile_ptx, numba.cuda.dispatcher = missing, dispatcher
    dispatcher.get_current_device = missing
    modules = {"numba": numba, "numba.cuda": numba.cuda, "numba.cuda.dispatcher": dispatcher}
    for name, each in {**modules, "cuda": ModuleType("cuda"), "cuda.pathfinder": None}.items():
        monkeypatch.setitem(sys.modules, name, each)
    monkeypatch.delitem(sys.modules, "ptxsim.adapters.numba", raising=False)
    with pytest.raises(ImportError, match=r"; pip install 'numba-cuda\[cu13\]' brings"):
        import_module("ptxsim.adapters.numba")
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", pathfinder)
    adapter = import_module("ptxsim.adapters.numba")
    del sys.modules["ptxsim.adapters.numba"]  # for good: that one has no Numba
    with pytest.raises(CompileError, match=r"no libnvrtc.so.13; pip install 'numba-cuda\[cu13\]'"):
        adapter.kernel(lambda x: None, ())
