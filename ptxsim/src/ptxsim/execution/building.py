"""Programs that ptxsim can run, and the library that stands in for CUDA's runtime."""

from __future__ import annotations

import hashlib
import platform
import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ptxsim.execution import messages, refusals
from ptxsim.native import answer_of, build_native, user_cache
from ptxsim.nvcc import CompileError, cuda_program
from ptxsim.runtime import SOURCE

# nvcc's: PTX that can be read, with lines, and a runtime that can be replaced.
_NVCC = ("-cudart", "shared", "-lineinfo", "-g", "-no-compress")
_REMEDY = "pip install nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt nvidia-cuda-runtime"
SINK = Path(__file__).parent / "sink" / "sink.cpp"
LIBRARY = "libcudart.so.13"
_MISSING = re.compile(r"undefined reference to `(cu\w+)'")
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
        missing = sorted(set(_MISSING.findall(said)))
        if missing:
            raise CompileError(f"not simulated: {', '.join(missing)}")
        raise CompileError(said.strip())


def program_options(arch: str, library: Path) -> tuple[str, ...]:
    """Options by which nvcc makes programs that ptxsim can run. library: as of ``stand_in``."""
    virtual = arch.replace("sm_", "compute_")
    return (*_NVCC, "-gencode", f"arch={virtual},code={virtual}", f"-L{library}")


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
        with tempfile.NamedTemporaryFile("w", suffix=".map") as versions:
            versions.write(_VERSIONS)
            versions.flush()
            link = (f"-Wl,-soname,{LIBRARY}", f"-Wl,--version-script={versions.name}", "-ldl")
            build_native("g++", [SINK, SOURCE], (*flags, *link), made, shared=True)
    for name in (LIBRARY, LIBRARY.removesuffix(".13")):
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
    defined = (*messages.macros(), *refusals.macros())
    return ("-std=c++20", "-O1", "-fPIC", "-fvisibility=default", *headers, *defined)


def _include(nvcc: Path) -> str:
    """The folder of CUDA's headers, as nvcc itself names it."""
    said = answer_of([nvcc, "--dryrun", "-x", "cu", "-c", "/dev/null"])
    found = re.search(r'^#\$ INCLUDES="-I([^"]+)"', said.stderr, re.MULTILINE)
    return found[1].strip() if found else "/usr/include"
