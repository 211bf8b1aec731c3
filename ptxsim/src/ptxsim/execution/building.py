"""Programs that ptxsim can run, and the library that stands in for CUDA's runtime."""

from __future__ import annotations

import hashlib
import platform
import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ptxsim.execution import cublas, messages, refusals
from ptxsim.execution.program_file import LIBRARY, said_by_linker
from ptxsim.native import answer_of, build_native, user_cache
from ptxsim.nvcc import CompileError, cuda_program, wheel_folders
from ptxsim.runtime import SOURCE

# nvcc's: PTX that can be read, with lines, and a runtime that can be replaced.
_NVCC = ("-cudart", "shared", "-lineinfo", "-g", "-no-compress")
_REMEDY = "pip install nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt nvidia-cuda-runtime"
SINK = Path(__file__).parent / "sink" / "sink.cpp"
# The other names by which programs link it; of some it has no function, and the linker says which.
_ALSO = (
    *("libcublas.so.13", "libcuda.so.1", "libcublasLt.so", "libcufft.so", "libcurand.so"),
    *("libcusolver.so", "libcusparse.so"),
)
_VERSIONS = f"{LIBRARY} {{ global: cuda*; cu*; __cuda*; local: *; }};\n"


def compile_program(options: Sequence[str], arch: str) -> None:
    """Have nvcc do what its ``options`` say, so that ptxsim can run the program. Raises
    CompileError."""
    nvcc = cuda_program("nvcc")
    if nvcc is None:
        raise CompileError(f"no nvcc on PATH or in the wheels; {_REMEDY}")
    done = answer_of([nvcc, *program_options(arch, stand_in()), *options])
    if done.returncode != 0:
        said = done.stderr + done.stdout
        raise CompileError(said_by_linker(said) or said.strip())


def program_options(arch: str, library: Path) -> tuple[str, ...]:
    """Options by which nvcc makes programs that ptxsim can run. library: as of ``stand_in``."""
    virtual = arch.replace("sm_", "compute_")
    # NVIDIA's own headers come first, where they are.
    headers = (f"{each}/include" for each in (*wheel_folders(), library))
    last = (f"-Xcompiler=-idirafter,{each}" for each in headers)
    return (*_NVCC, "-gencode", f"arch={virtual},code={virtual}", f"-L{library}", *last)


def stand_in(cache: Path | None = None) -> Path:
    """The folder of the stand-in library, which the first call on a machine compiles into a cache,
    by default the user's. Raises EngineError, CompileError."""
    flags = sink_flags()
    digest = hashlib.sha256(f"{'' if cache else platform.node()} {flags}".encode())
    for source in sorted([*SINK.parent.glob("*"), *SOURCE.parent.glob("*.?pp")]):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    folder = (cache or user_cache("ptxsim")) / f"runtime-{digest.hexdigest()[:16]}"
    made = folder / f"stand-in-{digest.hexdigest()[:16]}"
    if not made.exists():
        (folder / "include").mkdir(parents=True, exist_ok=True)
        (folder / "include" / "cublas_v2.h").write_text(cublas.header())
        with tempfile.NamedTemporaryFile("w", suffix=".map") as versions:
            versions.write(_VERSIONS)
            versions.flush()
            link = (f"-Wl,-soname,{LIBRARY}", f"-Wl,--version-script={versions.name}", "-ldl")
            build_native("g++", [SINK, SOURCE], (*flags, *link), made, shared=True)
    names = [LIBRARY, *_ALSO]
    for name in {*names, *(each.partition(".so")[0] + ".so" for each in names)}:
        with suppress(FileExistsError):  # another process may be as far
            (folder / name).symlink_to(made.name)
    return folder


def sink_flags() -> tuple[str, ...]:
    """Flags by which g++ compiles the stand-in library. Raises CompileError without CUDA's
    headers."""
    nvcc = cuda_program("nvcc")
    if nvcc is None:
        raise CompileError(f"no nvcc on PATH or in the wheels; {_REMEDY}")
    headers = (f"-I{_include(nvcc)}", f"-I{SOURCE.parent}")
    defined = (*messages.macros(), *refusals.macros(), *cublas.macros())
    return ("-std=c++20", "-O1", "-fPIC", "-fvisibility=default", *headers, *defined)


def _include(nvcc: Path) -> str:
    """The folder of CUDA's headers, as nvcc itself names it."""
    said = answer_of([nvcc, "--dryrun", "-x", "cu", "-c", "/dev/null"])
    found = re.search(r'^#\$ INCLUDES="-I([^"]+)"', said.stderr, re.MULTILINE)
    return found[1].strip() if found else "/usr/include"
