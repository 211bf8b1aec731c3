"""Real containers on a base without any registry: Debian's packages, podman, no network.

The base holds what the images in containers/ take from their distribution. It is made once per
machine and week, and kept in podman's own storage.
"""

import hashlib
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from grader.run.gpu.locks import locked
from ptxsim.plan import Record
from tests.support.commands import Done, run

PACKAGES = ("g++", "python3", "python3-venv", "util-linux", "zip", "unzip")
SUITE = "bookworm"
PYTHON = "3.11"  # the base's
_NAME = "localhost/sgemm-grader-base"
_WEEK_S = 7 * 24 * 3600
# How podman starts a container as root on this machine: the first that works. Old versions of crun
# refuse machines with both kinds of cgroups, and a root without CAP_SYS_RESOURCE cannot raise
# the limits to podman's own.
_OPTIONS = (
    *("--network", "none"),
    *("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=8192:8192"),
)
_WAYS = (
    ("--runtime", "crun"),
    ("--runtime", "runc"),
    ("--runtime", "crun", "--cgroups", "disabled"),
    ("--runtime", "runc", "--cgroups", "disabled"),
)


class Container(Record):
    """An image, and how to run commands in containers of it."""

    image: str
    way: tuple[str, ...]  # options of podman
    mounts: tuple[tuple[Path, str], ...] = ()  # folders of ours, and where they are

    def remove(self) -> None:
        """Delete the image."""
        _ran(["podman", "rmi", self.image])

    def run(
        self,
        *command: str,
        options: Sequence[str] = (),
        cwd: str | None = None,
        timeout: float = 300,
    ) -> Done:
        """A fresh container without network that runs ``command`` and is gone afterwards."""
        runtime, value, *others = self.way
        arguments = ["podman", runtime, value, "run", "--rm", *others, *_OPTIONS]
        for source, target in self.mounts:
            arguments += ["--volume", f"{source}:{target}"]
        if cwd is not None:
            arguments += ["--workdir", cwd]
        return _ran([*arguments, *options, self.image, *command], timeout)


def base() -> Container:
    """A container of the base; skips the test where podman does not work.

    A program that CI should have installed is a failure there.
    """
    found = _base()
    if isinstance(found, str):
        assert "CI" not in os.environ or os.getuid() != 0 or "missing" not in found, found
        pytest.skip(found)
    return found


def built(context: Path, containerfile: Path, image: str, *arguments: str) -> Container:
    """The image that ``containerfile`` describes, from the files of ``context``, without network.

    ``arguments`` are options of podman build.
    """
    way = base().way
    runtime, value, *_ = way
    command = ["podman", runtime, value, "build", *_OPTIONS]
    command += ["--tag", image, "--file", str(containerfile), *arguments]
    done = _ran([*command, str(context)], 900)
    assert done.returncode == 0, done.stderr[-4000:]
    return Container(image=image, way=way)


@cache
def _base() -> Container | str:
    """The base, or why there is none."""
    missing = [name for name in ("podman", "mmdebstrap") if shutil.which(name) is None]
    if missing:
        return f"no container is tried: missing: apt-get install {' '.join(missing)} (as root)"
    if os.getuid() != 0:
        return "no container is tried: that needs root"
    image = f"{_NAME}:{_key()}"
    with locked(Path(tempfile.gettempdir()) / "sgemm-grader-base.lock"):
        if _ran(["podman", "image", "exists", image]).returncode != 0:
            with tempfile.TemporaryDirectory() as folder:
                archive = Path(folder) / "base.tar"
                include = f"--include={','.join(PACKAGES)}"
                made = _ran(["mmdebstrap", "--variant=minbase", include, SUITE, str(archive)], 900)
                if made.returncode != 0:
                    return f"no base: mmdebstrap: {_last(made)}"
                for old in _ran(["podman", "images", "--quiet", _NAME]).stdout.split():
                    _ran(["podman", "rmi", "--force", old])
                imported = _ran(["podman", "import", str(archive), image], 300)
                if imported.returncode != 0:
                    return f"no base: podman import: {_last(imported)}"
    tried = ""
    for way in _WAYS:
        container = Container(image=image, way=way)
        done = container.run("true")
        if done.returncode == 0:
            return container
        tried = f"{' '.join(way)}: {_last(done)}"
    return f"podman starts no container here: {tried}"


def _key() -> str:
    words = (*PACKAGES, SUITE, platform.machine(), str(int(time.time() / _WEEK_S)))
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]


def _last(done: Done) -> str:
    return (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]


def _ran(command: Sequence[str], timeout: float = 60) -> Done:
    return run(command, Path("/"), timeout)
