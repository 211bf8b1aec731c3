"""Finds nvcc: from CUDA_HOME, on PATH or in PyPI wheels.

An nvcc on PATH that does not serve is passed over: one that is too old, that cannot compile for the
GPU, or that the host's C++ compiler is too new for. One that CUDA_HOME names must serve.

Nothing here runs untrusted code. ``SGEMM_GRADER_CUDA`` (home, path or wheel) forces one origin,
which is how the tests compile with the wheels on a machine that also has a system CUDA.
"""

import functools
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

from grader.base import ToolchainError, cache_folder, find_host_compiler
from ptxsim import answer_of, wheel_folders
from ptxsim.plan import Record
from ptxsim.text import Message, clauses, phrase, verbatim

ORIGIN_VARIABLE = "SGEMM_GRADER_CUDA"
_ORIGINS = {"home": "CUDA_HOME", "path": "PATH", "wheel": "wheel"}
_ANSWER_S = 60.0  # wall; it takes a moment
_REMEDY = phrase(
    "install the wheels (pip install sgemm-grader includes them), or set CUDA_HOME to a CUDA "
    "toolkit 11.8 or newer"
)
_OLDEST = (11, 8)
_OLDEST_OF_SUFFIX = (12, 0)  # that knows sm_90a
_HEADER = "cuda_runtime_api.h"
_SYSTEM_INCLUDE = Path("/usr/include")


class Toolchain(Record):
    """The programs and headers a build uses; every path is absolute and exists."""

    nvcc: Path
    ptxas: Path  # the one that this nvcc uses
    host_compiler: Path
    cuda_version: str  # "13.0.88"
    origin: str  # "CUDA_HOME", "PATH" or "wheel"
    roots: tuple[Path, ...]  # folders a sandbox must show, beside the system's own
    include: Path  # holds cuda_runtime_api.h
    nvdisasm: Path | None
    cutlass_include: Path | None  # CuTe headers, when the nvidia-cutlass wheel is installed
    passed_over: tuple[Message, ...] = ()  # why: of each nvcc found that does not serve

    @property
    def shown(self) -> tuple[Path, ...]:
        """Return the folders that a sandbox must show, that of a compiler of one's own included."""
        compiler = self.host_compiler.resolve()
        own = () if compiler.is_relative_to("/usr") else (compiler.parent.parent,)
        return (*self.roots, *own)

    @property
    def cutlass_folders(self) -> tuple[Path, ...]:
        """Return the folders of headers: CuTe's and CUTLASS's, and those that only CUTLASS's
        examples use."""
        if self.cutlass_include is None:
            return ()
        utilities = self.cutlass_include.parent / "tools" / "util" / "include"
        return tuple(each for each in (self.cutlass_include, utilities) if each.is_dir())


_SEARCH = threading.Lock()  # of two threads that search, one compiles the trial program


@functools.cache
def find_toolchain(arch: str = "sm_80") -> Toolchain:
    """The toolchain to build with for ``arch``, looked for once per process. Order: CUDA_HOME,
    PATH, PyPI wheels. Raises ToolchainError, saying what to install."""
    with _SEARCH:
        return _find(arch)


def _find(arch: str) -> Toolchain:
    host_compiler = find_host_compiler()
    cache_folder()  # if there is none, that is no fault of an nvcc
    forced = os.environ.get(ORIGIN_VARIABLE)
    if forced and forced not in _ORIGINS:
        words = phrase("{setting}: must be one of {names}", names=", ".join(_ORIGINS))
        raise ToolchainError(words.given(setting=f"{ORIGIN_VARIABLE}={forced}"))
    passed_over: list[Message] = []
    for origin, nvcc in _candidates():
        if forced and origin != _ORIGINS[forced]:
            continue
        try:
            real, ptxas, include, version = _ask(nvcc)
            root = real.parent.parent
            programs = [place / "bin" / "nvdisasm" for place in (root, *wheel_folders())]
            toolchain = Toolchain(
                nvcc=real,
                ptxas=ptxas,
                host_compiler=host_compiler,
                cuda_version=version,
                origin=origin,
                roots=(root,),
                include=include,
                nvdisasm=next((path for path in programs if os.access(path, os.X_OK)), None),
                cutlass_include=_cutlass_include(),
                passed_over=tuple(passed_over),
            )
            _must_serve(toolchain, arch)
            return toolchain
        except ToolchainError as error:
            if origin == "CUDA_HOME":
                raise
            passed_over.append(error.message)
    where = phrase("CUDA_HOME, PATH or the PyPI wheels")
    if forced:
        where = verbatim(f"{ORIGIN_VARIABLE}={forced}")
    if passed_over:
        raise ToolchainError.saying(
            "no usable nvcc in {place}: {reasons}: {remedy}",
            place=where,
            reasons=clauses(passed_over),
            remedy=_REMEDY,
        )
    raise ToolchainError.saying("no nvcc in {place}: {remedy}", place=where, remedy=_REMEDY)


def _must_serve(toolchain: Toolchain, arch: str) -> None:
    """Raises ToolchainError, saying why it does not."""
    name = f"nvcc {toolchain.cuda_version} ({toolchain.nvcc})"
    major, minor = (int(number) for number in toolchain.cuda_version.split(".")[:2])
    if (major, minor) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise ToolchainError.saying("{nvcc} is older than {oldest}", nvcc=name, oldest=oldest)
    known = architectures(toolchain.nvcc)
    plain = arch.rstrip("af")  # sm_90 for sm_90a, which no nvcc lists
    if plain not in known or (plain != arch and (major, minor) < _OLDEST_OF_SUFFIX):
        raise ToolchainError.saying(
            "{nvcc} does not compile for {arch}, only for {names}",
            nvcc=name,
            arch=arch,
            names=", ".join(known),
        )
    if why := refusal(toolchain.nvcc, toolchain.host_compiler, arch):
        compiler = str(toolchain.host_compiler)
        raise ToolchainError.saying(
            "{nvcc} does not work with {compiler}: {why}", nvcc=name, compiler=compiler, why=why
        )


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("CUDA_HOME"):
        nvcc = Path(home) / "bin" / "nvcc"
        if not os.access(nvcc, os.X_OK):
            raise ToolchainError.saying(
                "CUDA_HOME={folder} holds no bin/nvcc: unset it or correct it", folder=home
            )
        yield "CUDA_HOME", nvcc
    if found := shutil.which("nvcc"):
        yield "PATH", Path(found)
    for folder in wheel_folders():
        nvcc = folder / "bin" / "nvcc"
        if os.access(nvcc, os.X_OK):
            yield "wheel", nvcc


@functools.cache
def _ask(nvcc: Path) -> tuple[Path, Path, Path, str]:
    """The nvcc that really runs, which a script or link may hide; its ptxas, headers, version."""
    try:
        done = _run([str(nvcc), "--dryrun", "-E", "-x", "cu", os.devnull], _ANSWER_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _no_nvcc(nvcc, str(error)) from None
    answer = done.stderr
    here = re.search(r"^#\$ _HERE_=(.+)$", answer, re.MULTILINE)
    path = re.search(r"^#\$ PATH=(.+)$", answer, re.MULTILINE)
    include = re.search(r'^#\$ INCLUDES="-I([^"]+)"', answer, re.MULTILINE)
    headers = Path(include[1]) if include else _SYSTEM_INCLUDE  # Debian's nvcc names no folder
    numbers = re.findall(r"-D__CUDACC_VER_(?:MAJOR|MINOR|BUILD)__=(\d+)", answer)[:3]
    if here is None or not (headers / _HEADER).is_file() or len(numbers) != 3:
        why = "".join(answer.strip().splitlines()[:1]) or f"status {done.returncode}"
        raise _no_nvcc(nvcc, why)
    ptxas = shutil.which("ptxas", path=path[1] if path else here[1])
    if ptxas is None:
        raise ToolchainError.saying(
            "{nvcc} has no ptxas beside it: {remedy}", nvcc=str(nvcc), remedy=_REMEDY
        )
    real = (Path(here[1]) / "nvcc").resolve()
    return real, Path(ptxas).resolve(), headers.resolve(), ".".join(numbers)


def _no_nvcc(nvcc: Path, why: str) -> ToolchainError:
    return ToolchainError.saying(
        "{nvcc} does not answer as nvcc does ({why}): {remedy}",
        nvcc=str(nvcc),
        why=why,
        remedy=_REMEDY,
    )


def _cutlass_include() -> Path | None:
    """The nvidia-cutlass wheel keeps the headers in ``cutlass_library/source/include``."""
    spec = importlib.util.find_spec("cutlass_library")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        include = Path(place) / "source" / "include"
        if (include / "cute" / "tensor.hpp").is_file():
            return include
    return None


# --- trial -------------------------------------------------------------------------------------

_PROGRAM = Path(__file__).with_name("trial.cu")
_TIME_S = 120.0  # wall; it takes a second or two
_WORDS = 110  # characters of its complaint
_WORKS = "works"


@functools.cache
def architectures(nvcc: Path) -> tuple[str, ...]:
    """``sm_80`` and its like, oldest first."""
    try:
        listed = _run([str(nvcc), "--list-gpu-arch"], _TIME_S).stdout.split()
    except (OSError, subprocess.TimeoutExpired):
        return ()
    numbers = {int(name.removeprefix("compute_")) for name in listed if name.startswith("compute_")}
    return tuple(f"sm_{number}" for number in sorted(numbers))


def to_ptx(arch: str) -> str:
    """The option that makes PTX, and no machine code, of ``arch``. For compute_90a ``-arch`` does
    the same for compute_90 as well."""
    virtual = arch.replace("sm_", "compute_")
    return f"-gencode=arch={virtual},code={virtual}"


def refusal(nvcc: Path, host_compiler: Path, arch: str) -> str:
    """Why the two do not compile a small program together; "" if they do. The answer is kept in the
    cache folder until one of them changes."""
    stats = ((path.resolve(), path.stat()) for path in (nvcc, host_compiler))
    state = [(path, stat.st_size, stat.st_mtime_ns) for path, stat in stats]
    key = hashlib.sha256(f"{state} {_PROGRAM.read_text()}".encode()).hexdigest()[:16]
    known = cache_folder() / "toolkits" / key
    if known.exists():
        return known.read_text().removeprefix(_WORKS)
    why = _compile(nvcc, host_compiler, arch)
    known.parent.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=known.parent, delete=False) as file:
        file.write(why or _WORKS)
    Path(file.name).replace(known)
    return why


def _compile(nvcc: Path, host_compiler: Path, arch: str) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        output = f"-o={scratch}/trial.o"
        command = [str(nvcc), f"-ccbin={host_compiler}", to_ptx(arch), "-std=c++17", "-c", output]
        try:
            done = _run([*command, str(_PROGRAM)], _TIME_S)
        except (OSError, subprocess.TimeoutExpired):
            return "it does not end"
    if done.returncode == 0:
        return ""
    said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    error = next((line for line in said if "error" in line), said[0] if said else "")
    _, _, words = error.rpartition("error")
    words = words.strip(" :-#") or f"status {done.returncode}"
    return textwrap.shorten(words, _WORDS, placeholder=" …")


def _run(command: list[str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Run nvcc as a build's sandbox does, which has no variables with options (NVCC_APPEND_FLAGS).
    Raises OSError and TimeoutExpired."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("NVCC_")}
    return answer_of(command, env=plain, timeout=seconds)
