"""A machine laid out like Gradescope's: /autograder, no network, 2 GB, root's own /usr.

Dependencies of the grader are mounted, so that setup.sh downloads nothing; everything else that
setup.sh and run_autograder do, they do for real.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy

from grader.model import Record
from grader.sandbox import bubblewrap

MEMORY = 2 << 30
_GROUPS = Path("/sys/fs/cgroup/memory")
_SITE = Path(numpy.__file__).parents[1]
_OURS = ("sgemm_grader", "__editable__", "pip", "setuptools", "distutils", "_distutils")
_PACKAGES = "/opt/dependencies"
_METADATA = {
    "id": 4711,
    "created_at": "2026-11-22T03:04:05.678901+00:00",
    "assignment": {"id": 17, "title": "SGEMM", "total_points": "10.0", "due_date": None},
    "users": [{"id": 1, "name": "Al Davis, Jr.", "email": "al@example.edu"}],
    "submission_method": "upload",
    "previous_submissions": [],
}


class Graded(Record):
    status: int
    results: dict[str, Any] | None  # null: Gradescope says that the autograder failed
    printed: str
    seconds: float


class Autograder:
    """One image: the kit, unpacked and set up."""

    def __init__(self, root: Path, kit: Path) -> None:
        self.root = root
        source = root / "source"
        with zipfile.ZipFile(kit) as archive:
            archive.extractall(source)
            for entry in archive.infolist():
                (source / entry.filename).chmod(entry.external_attr >> 16 & 0o777)
        shutil.copy(source / "run_autograder", root)
        packages = root / "venv" / "lib" / "python3.11" / "site-packages"
        packages.mkdir(parents=True)
        (packages / "dependencies.pth").write_text(f"{_PACKAGES}\n")

    def set_up(self) -> subprocess.CompletedProcess[str]:
        return self._inside(["bash", "/autograder/source/setup.sh"])

    def grade(self, files: Mapping[str, str | bytes] | Path) -> Graded:
        """Hand in these files, or this folder, and run the autograder."""
        place = self.root / "submission"
        shutil.rmtree(place, ignore_errors=True)
        if isinstance(files, Path):
            shutil.copytree(files, place, symlinks=True)
        else:
            place.mkdir()
            for name, content in files.items():
                data = content.encode() if isinstance(content, str) else content
                (place / name).write_bytes(data)
        results = self.root / "results"
        shutil.rmtree(results, ignore_errors=True)
        results.mkdir()
        (self.root / "submission_metadata.json").write_text(json.dumps(_METADATA))
        started = time.monotonic()
        done = self._inside(["/autograder/run_autograder"])
        file = results / "results.json"
        return Graded(
            status=done.returncode,
            results=json.loads(file.read_text()) if file.exists() else None,
            printed=done.stdout,
            seconds=time.monotonic() - started,
        )

    def _inside(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        bwrap = bubblewrap.working()
        assert bwrap is not None
        mounts = ["--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc"]
        for name in ("bin", "sbin", "lib", "lib64"):
            mounts += ["--symlink", f"usr/{name}", f"/{name}"]
        mounts += ["--perms", "0755", "--dir", "/opt", "--perms", "0755", "--dir", _PACKAGES]
        for entry in sorted(_SITE.iterdir()):
            if not entry.name.startswith(_OURS):
                mounts += ["--ro-bind", str(entry), f"{_PACKAGES}/{entry.name}"]
        mounts += ["--bind", str(self.root), "/autograder", "--chdir", "/autograder"]
        mounts += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--chmod", "1777", "/tmp"]
        alone = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent"]
        with _memory_group() as group:
            join = f'echo $$ >{group}/cgroup.procs; exec "$@"' if group else 'exec "$@"'
            return subprocess.run(
                ["bash", "-c", join, "bash", str(bwrap[0]), *alone, *mounts, "--", *command],
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PIP_NO_INDEX": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=600,
                check=False,
            )


@contextmanager
def _memory_group() -> Iterator[Path | None]:
    """A control group with 2 GB, where this machine lets us make one."""
    group = _GROUPS / f"autograder-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(MEMORY))
    except OSError:
        yield None
        return
    try:
        yield group
    finally:
        for _ in range(100):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.1)
