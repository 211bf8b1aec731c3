"""A container laid out like Gradescope's: /autograder, no network, 2 GB.

The grader's dependencies are mounted, so that setup.sh downloads nothing. Everything else that
setup.sh and run_autograder do, they do for real, under the container runtime's own seccomp profile.
"""

from __future__ import annotations

import json
import shutil
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy

from grader.base.native import cache_folder
from ptxsim.records import Record
from tests.support.commands import Done
from tests.support.container import Container, base

MEMORY_MB = 2048
_SITE = Path(numpy.__file__).parents[1]
_OWN = (
    "sgemm_grader",
    "ptxsim",
    "__editable__",
    "_editable",
    "pip",
    "setuptools",
    "distutils",
    "_distutils",
    "pkg_res",
)
_PACKAGES = "/opt/dependencies"
_NOBODY = 65534
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
        root.chmod(0o755)
        source = root / "source"
        with zipfile.ZipFile(kit) as archive:
            archive.extractall(source)
            for entry in archive.infolist():
                (source / entry.filename).chmod(entry.external_attr >> 16 & 0o777)
        shutil.copy(source / "run_autograder", root)
        packages = root / "venv" / "lib" / "python3.11" / "site-packages"
        packages.mkdir(parents=True)
        (packages / "dependencies.pth").write_text(f"{_PACKAGES}\n")
        mounts = [
            (entry, f"{_PACKAGES}/{entry.name}")
            for entry in sorted(_SITE.iterdir())
            if not entry.name.startswith(_OWN)
        ]
        self._container: Container = msgspec.structs.replace(
            base(), mounts=((root, "/autograder"), *mounts)
        )

    def bring_compiled(self) -> None:
        """What the grader has compiled here: the same compiler would make it again in a minute."""
        native = self.root / "cache" / "native"
        shutil.copytree(cache_folder() / "native", native)
        for path in (native.parent, native, *native.rglob("*")):
            shutil.chown(path, _NOBODY, _NOBODY)
        native.parent.chmod(0o700)

    def set_up(self) -> Done:
        return self._inside("bash", "/autograder/source/setup.sh")

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
        done = self._inside("/autograder/run_autograder")
        file = results / "results.json"
        return Graded(
            status=done.returncode,
            results=json.loads(file.read_text()) if file.exists() else None,
            printed=done.stdout + done.stderr,
            seconds=time.monotonic() - started,
        )

    def _inside(self, *command: str) -> Done:
        options = ("--env", "PIP_NO_INDEX=1", "--memory", f"{MEMORY_MB}m")
        return self._container.run(*command, options=options, cwd="/autograder", timeout=600)
