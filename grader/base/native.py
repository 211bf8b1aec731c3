"""Compiles the grader's own C++ once and keeps the result in a cache folder.

The cache may be deleted at any time; missing files are compiled again. Beside it there may be a
folder that ``grade doctor --prepare`` filled, for other users and machines.
"""

import functools
import hashlib
import math
import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

import grader
import ptxsim
from grader.base.errors import ToolchainError
from ptxsim import EngineError, answer_of, build_native, user_cache
from ptxsim.plan import Record
from ptxsim.text import Message, phrase

CACHE_VARIABLE = "SGEMM_GRADER_CACHE"
PREPARED_VARIABLE = "SGEMM_GRADER_PREPARED"
LIMIT_VARIABLE = "SGEMM_GRADER_CACHE_GB"
_LIMIT_GB = 4.0
_OUR_CODE = (".py", ".toml", ".cpp", ".hpp")
_INCLUDED = (".h", ".hpp", ".inc", ".cpp")
_SHIPPED = Path(__file__).parents[1] / "built"  # what the wheel brought
_ANOTHERS = phrase("it is another user's")
_ALWAYS = ("-std=c++17", "-fPIC", "-Wall", "-Wextra")


def cache_folder() -> Path:
    """The folder for compiled files; creates it if missing. Raises ToolchainError.

    The grader runs its contents, so it must belong to this user: anybody can create a folder in
    /tmp.
    """
    named = os.environ.get(CACHE_VARIABLE)
    remedy = phrase("set {variable} to a folder of your own", variable=CACHE_VARIABLE)
    try:
        folder = Path(named) if named else user_cache("sgemm-grader")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.stat()
    except OSError as error:
        raise ToolchainError(_useless(folder, str(error.strerror), remedy)) from None
    except RuntimeError:  # no home folder
        raise ToolchainError.saying("no place for the cache: {remedy}", remedy=remedy) from None
    if state.st_uid != os.getuid():
        raise ToolchainError(_useless(folder, _ANOTHERS, remedy))
    if state.st_mode & stat.S_IWOTH:
        raise ToolchainError(_useless(folder, phrase("it can be written by all"), remedy))
    return folder.absolute()


def prepared(name: str) -> Path | None:
    """The file of this name that ``grade doctor --prepare`` compiled for other users and machines,
    if there is one. Raises ToolchainError if it could be a stranger's."""
    folder = Path(os.environ.get(PREPARED_VARIABLE) or "/nonexistent")
    file = folder / "native" / name
    if not file.exists():
        return None
    state = file.stat()
    trusted = {os.getuid(), 0, Path(__file__).stat().st_uid}  # whoever installed the grader
    if state.st_uid not in trusted or state.st_mode & stat.S_IWOTH:
        remedy = phrase("unset {variable}", variable=PREPARED_VARIABLE)
        raise ToolchainError(_useless(folder, _ANOTHERS, remedy))
    return file


def _useless(folder: Path, why: Message | str, remedy: Message) -> Message:
    return phrase(
        "cache folder {folder}: {why}: {remedy}", folder=str(folder), why=why, remedy=remedy
    )


def cache_limit() -> int:
    """Bytes that finished builds may take in the cache. Raises ToolchainError."""
    named = os.environ.get(LIMIT_VARIABLE)
    try:
        limit = float(named) if named else _LIMIT_GB
        if not 0 <= limit < math.inf:
            raise ValueError
    except ValueError:
        wrong = phrase("{setting}: not a size; give gigabytes, such as {usual:g}", usual=_LIMIT_GB)
        raise ToolchainError(wrong.given(setting=f"{LIMIT_VARIABLE}={named}")) from None
    return int(limit * 1e9)


@functools.cache
def own_code() -> str:
    """A digest of the grader's and the simulator's code, on which what they find depends."""
    digest = hashlib.sha256()
    for package in (grader, ptxsim):
        for path in sorted(Path(str(package.__file__)).parent.rglob("*")):
            if path.suffix in _OUR_CODE:
                content = path.read_bytes()
                digest.update(f"\0{path.name} {len(content)}\0".encode() + content)
    return digest.hexdigest()


class Native(Record):
    """A program, or a library if ``shared``, made from C++ ``sources``.

    ``flags`` go to the compiler and the linker. The standard is C++17 unless they name
    another. ``shipped`` is the build that another distribution's wheel brought, if one did. The
    grader's own wheel has what CMakeLists.txt made, named by sources and flags. The cache key
    covers the sources, all C++ in and below their folders, the compiler and the flags.
    """

    name: str
    sources: tuple[Path, ...]
    shared: bool
    flags: tuple[str, ...] = ()
    shipped: Path | None = None

    def path(self) -> Path:
        """Its path: the wheel's, or in the cache whether compiled or not. Raises ToolchainError."""
        shipped = self.shipped or _SHIPPED / self.shipped_name()
        if shipped.exists():
            return shipped
        name = self.file_name
        return prepared(name) or cache_folder() / "native" / name

    @property
    def file_name(self) -> str:
        """Its name in the cache, by all that it is made from. Raises ToolchainError."""
        words = [_version(find_host_compiler()), *self.every_flag]
        if "-march=native" in self.flags:
            words.append(_cpu())
        return self._name_by(words)

    def shipped_name(self) -> str:
        """Return the name of its file in the grader's wheel, whatever folders headers lie in."""
        return self._name_by([flag for flag in self.every_flag if not flag.startswith("-I")])

    def _name_by(self, words: Sequence[str]) -> str:
        digest = hashlib.sha256("\0".join((*words, str(self.shared))).encode())
        # What the sources may include: all that lies in their folders and below.
        near = (path for source in self.sources for path in source.parent.rglob("*"))
        for path in sorted({*self.sources, *(p for p in near if p.suffix in _INCLUDED)}):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
        return f"{self.name}-{digest.hexdigest()[:16]}{'.so' if self.shared else ''}"

    def compiled(self) -> Path:
        """The same path, compiled if necessary. It appears by rename, so two graders may compile at
        once. Raises ToolchainError with the compiler's messages."""
        target = self.path()
        if target.exists():
            return target
        compiler = str(find_host_compiler())
        try:
            build_native(compiler, self.sources, self.every_flag, target, shared=self.shared)
        except (EngineError, OSError) as error:
            failed = phrase("{compiler} cannot compile the grader's own code: {error}")
            raise ToolchainError(failed.given(compiler=compiler, error=str(error))) from None
        return target

    @property
    def every_flag(self) -> tuple[str, ...]:
        return (*_ALWAYS, *self.flags)


@functools.cache
def _version(compiler: Path) -> str:
    return answer_of([compiler, "--version"]).stdout


def _cpu() -> str:
    """The CPU that -march=native depends on: different nodes often share a home folder."""
    lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    return "".join(sorted({line for line in lines if line.startswith(("flags", "model name"))}))


@functools.cache
def find_host_compiler() -> Path:
    """The C++ compiler that nvcc uses: NVCC_CCBIN, else g++ on PATH. Raises ToolchainError."""
    named = os.environ.get("NVCC_CCBIN")
    path = Path(named or "g++")
    if found := shutil.which(str(path / "g++" if named and path.is_dir() else path)):
        return Path(found).absolute()
    if named:
        raise ToolchainError.saying(
            "NVCC_CCBIN={named} is no C++ compiler: unset it or correct it", named=named
        )
    raise ToolchainError.saying(
        "no C++ compiler: install g++ (Debian, Ubuntu: apt-get install g++)"
    )
