"""What must hold before anything is graded, checked once: a lab's rules fit the machine."""

from __future__ import annotations

from grader.backends.probe import gpu_names
from grader.errors import UsageError
from grader.grading.measures import measures
from grader.grading.preparing import Bench
from grader.model import phrase
from grader.sandbox.running import Mode


def ready(bench: Bench, sandbox: Mode) -> None:
    """sandbox: as asked for. Raises LabError if the lab's scoring says nothing of the GPU at hand,
    and UsageError where a submission could read the secret of hidden sizes."""
    hidden = bench.lab.hidden
    if hidden is not None and hidden.known and bench.sandbox.kind == "rlimits" and sandbox != "off":
        raise UsageError(
            phrase(
                "hidden sizes need a sandbox: without one a submission can read their secret; see "
                "grade doctor, or accept that with --sandbox off"
            )
        )
    if bench.gpu_arch is not None:
        measures(bench.lab, gpu_names()[0], bench.ladders)
