"""Compiles the grader's own C++ once and keeps the result in a cache folder.

The cache may be deleted at any time; missing files are compiled again.
"""

from __future__ import annotations

import fcntl
import hashlib
import math
import os
import re
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from grader.errors import MachineError, ToolchainError
from grader.model import Message, Record, phrase
from grader.toolchain.host_compiler import find_host_compiler

CACHE_VARIABLE = "SGEMM_GRADER_CACHE"
LIMIT_VARIABLE = "SGEMM_GRADER_CACHE_GB"
_LIMIT_GB = 4.0
_HEADERS = (".h", ".hpp", ".inc")
_STANDARD = re.compile(rb"^#include (<[a-z_]+>)", re.MULTILINE)  # of C++: every compiler has them
_MANY = 8  # sources, for which it pays to read these once
_ALWAYS = ("-std=c++17", "-fPIC", "-Wall", "-Wextra")


def cache_folder() -> Path:
    """The folder for compiled files; creates it if missing. Raises ToolchainError.

    The grader runs its contents, so it must belong to this user: anybody can create a folder in
    /tmp.
    """
    named = os.environ.get(CACHE_VARIABLE)
    remedy = phrase("set {variable} to a folder of your own", variable=CACHE_VARIABLE)
    try:
        folder = Path(named) if named else _user_caches() / "sgemm-grader"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.stat()
    except OSError as error:
        raise ToolchainError(_useless(folder, str(error.strerror), remedy)) from None
    except RuntimeError:  # no home folder
        raise ToolchainError(phrase("no place for the cache: {remedy}", remedy=remedy)) from None
    if state.st_uid != os.getuid() or state.st_mode & stat.S_IWOTH:
        others = state.st_uid != os.getuid()
        why = phrase("it is another user's") if others else phrase("it can be written by all")
        raise ToolchainError(_useless(folder, why, remedy))
    return folder.absolute()


def _useless(folder: Path, why: Message | str, remedy: Message) -> Message:
    return phrase(
        "cache folder {folder}: {why}: {remedy}", folder=str(folder), why=why, remedy=remedy
    )


def _user_caches() -> Path:
    xdg = os.environ.get("XDG_CACHE_HOME")
    return Path(xdg) if xdg else Path.home() / ".cache"


def cache_limit() -> int:
    """Bytes that finished builds may take in the cache. Raises ToolchainError."""
    named = os.environ.get(LIMIT_VARIABLE)
    try:
        limit = float(named) if named else _LIMIT_GB
        if not 0 <= limit < math.inf:
            raise ValueError
    except ValueError:
        raise ToolchainError(
            phrase(
                "{setting}: not a size; give gigabytes, such as {usual:g}",
                setting=f"{LIMIT_VARIABLE}={named}",
                usual=_LIMIT_GB,
            )
        ) from None
    return int(limit * 1e9)


def lock_folder() -> Path:
    """This machine's folder for locks, private to the user. Raises MachineError.

    It is not in the cache folder, because several machines may share that.
    """
    folder = Path(tempfile.gettempdir()) / f"sgemm-grader-locks-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    state = folder.lstat()
    private = stat.S_ISDIR(state.st_mode) and not state.st_mode & 0o077
    if not private or state.st_uid != os.getuid():
        raise MachineError(
            phrase(
                "{folder}: not a private folder of yours; remove it, or set TMPDIR to another "
                "folder",
                folder=str(folder),
            )
        )
    return folder


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold ``path`` as a lock file, so that two graders do not do the same work at once.

    Yields whether it is held; without ``wait`` somebody else may hold it. Raises MachineError if
    ``path`` is not a regular file.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise MachineError(
            phrase(
                "{path}: cannot be a lock: {why}; remove it",
                path=str(path),
                why=str(error.strerror),
            )
        ) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise MachineError(
                phrase(
                    "{path}: not a plain file, so it cannot be a lock; remove it", path=str(path)
                )
            )
        held = True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            held = False
        yield held
    finally:
        os.close(descriptor)


class Native(Record):
    """A program, or a library if ``shared``, made from C++ ``sources``.

    ``flags`` go to the compiler and the linker. The standard is C++17 unless they name
    another. The cache key covers the sources, the headers in and below their folders, the compiler
    and the flags.
    """

    name: str
    sources: tuple[Path, ...]
    shared: bool
    flags: tuple[str, ...] = ()

    def path(self) -> Path:
        """Its path in the cache, whether compiled or not. Raises ToolchainError."""
        key = _key(
            find_host_compiler(),
            self.sources,
            [*self.every_flag, "-shared" if self.shared else ""],
        )
        return cache_folder() / "native" / f"{self.name}-{key}{'.so' if self.shared else ''}"

    def compiled(self) -> Path:
        """The same path, compiled if necessary. It appears by rename, so two graders may compile at
        once. Raises ToolchainError with the compiler's messages."""
        target = self.path()
        if target.exists():
            return target
        folder = target.parent
        folder.mkdir(exist_ok=True)
        with (
            locked(folder / f"{self.name}.lock"),
            tempfile.TemporaryDirectory(dir=folder) as scratch,
        ):
            if not target.exists():
                output = Path(scratch) / target.name
                said = _compile_and_link(
                    find_host_compiler(), self.sources, self.every_flag, output, shared=self.shared
                )
                self.warnings_file.write_text(said)
                output.replace(target)
        return target

    @property
    def warnings_file(self) -> Path:
        """What the compiler said; beside what was compiled."""
        path = self.path()
        return path.with_name(f"{path.name}.warnings")

    @property
    def every_flag(self) -> tuple[str, ...]:
        return (*_ALWAYS, *self.flags)


def compile_native(
    name: str, sources: Sequence[Path], *, shared: bool, flags: Sequence[str] = ()
) -> Path:
    """``Native.compiled`` in one call."""
    return Native(name=name, sources=tuple(sources), shared=shared, flags=tuple(flags)).compiled()


def _compile_and_link(
    compiler: Path, sources: Sequence[Path], flags: Sequence[str], output: Path, *, shared: bool
) -> str:
    """The compiler's warnings."""
    objects = [output.parent / f"{index}.o" for index in range(len(sources))]
    # With a library among its arguments, g++ would link a precompiled header.
    command = [str(compiler), *(flag for flag in flags if not flag.startswith("-l"))]
    if len(sources) >= _MANY:
        command += ["-include", str(_precompiled(command, sources, output.parent))]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        jobs = [
            pool.submit(_run, [*command, "-c", str(source), "-o", str(object_file)])
            for source, object_file in zip(sources, objects, strict=True)
        ]
        said = [job.result() for job in jobs]
    mode = ["-shared"] if shared else []
    said.append(_run([str(compiler), *mode, *map(str, objects), *flags, "-o", str(output)]))
    return "".join(said)


def _precompiled(command: list[str], sources: Sequence[Path], folder: Path) -> Path:
    """A header that includes every standard one that the sources do; the compiler reads what it
    made of it, which takes half the time of a small source."""
    texts = (path.read_bytes() for path in [*sources, *_headers(sources)])
    names = sorted({name for text in texts for name in _STANDARD.findall(text)})
    header = folder / "standard.hpp"
    header.write_bytes(b"".join(b"#include %b\n" % name for name in names))
    _run([*command, "-x", "c++-header", str(header), "-o", f"{header}.gch"])
    return header


def _run(command: list[str]) -> str:
    """What it says. Raises ToolchainError."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        error = next((line for line in done.stderr.splitlines() if "error:" in line), done.stderr)
        raise ToolchainError(
            phrase(
                "{compiler} cannot compile the grader's own code: {error}",
                compiler=command[0],
                error=error.strip(),
            )
        )
    return done.stderr


def _key(compiler: Path, sources: Sequence[Path], flags: Sequence[str]) -> str:
    digest = hashlib.sha256()
    version = subprocess.run([compiler, "--version"], capture_output=True, check=False).stdout
    digest.update(version + "\0".join(flags).encode())
    if "-march=native" in flags:
        digest.update(_cpu())
    for path in [*sources, *_headers(sources)]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _headers(sources: Sequence[Path]) -> list[Path]:
    """Those in the sources' folders and below."""
    folders = {source.parent for source in sources}
    return sorted(
        {path for folder in folders for path in folder.rglob("*") if path.suffix in _HEADERS}
    )


def _cpu() -> bytes:
    """The CPU that -march=native depends on: different nodes often share a home folder."""
    lines = Path("/proc/cpuinfo").read_bytes().splitlines()
    return b"".join(sorted({line for line in lines if line.startswith((b"flags", b"model name"))}))
