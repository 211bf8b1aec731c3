"""What must hold before anything is graded, checked once: a lab's rules fit the machine."""

from __future__ import annotations

from pathlib import Path

from grader.backends.probe import gpu_names
from grader.errors import UsageError
from grader.grading.measures import measures
from grader.grading.preparing import Bench
from grader.model import phrase
from grader.sandbox.running import Mode
from grader.sandbox.system_files import SYSTEM
from grader.toolchain.discovery import Toolchain


def ready(bench: Bench, sandbox: Mode) -> None:
    """sandbox: as asked for. Raises LabError if the lab's scoring says nothing of the GPU at hand,
    and UsageError where a submission could read the secret of hidden sizes."""
    hidden = bench.lab.hidden
    if hidden is not None and hidden.known and hidden.seed_file is not None:
        _out_of_sight(hidden.seed_file, bench.toolchain)
    if hidden is not None and hidden.known and bench.sandbox.kind == "rlimits" and sandbox != "off":
        raise UsageError(
            phrase(
                "hidden sizes need a sandbox: without one a submission can read their secret; see "
                "grade doctor, or accept that with --sandbox off"
            )
        )
    if bench.gpu_arch is not None:
        measures(bench.lab, gpu_names()[0], bench.ladders)


def _out_of_sight(seed: Path, toolchain: Toolchain) -> None:
    """Raises UsageError for a secret that lies in a folder which every sandbox shows."""
    for place in (Path("/usr"), *map(Path, SYSTEM), *toolchain.roots):
        if seed.resolve().is_relative_to(place.resolve()):
            raise UsageError(
                phrase(
                    "{seed}: submissions can read files in {folder}; keep the lab file and its "
                    "seed elsewhere",
                    seed=str(seed),
                    folder=str(place),
                )
            )
