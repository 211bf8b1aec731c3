"""``autograder.zip`` for Gradescope.

Formats: https://gradescope-autograders.readthedocs.io/en/latest/specs/ and …/troubleshooting/
(read 2026-11-22): setup.sh runs once, when the image is built; run_autograder runs in /autograder
for each submission, as root, and leaves results/results.json. Without that file, Gradescope says
that the autograder failed.
"""

from __future__ import annotations

from pathlib import Path

from grader.course.kits import kit
from grader.course.kits.wheel import grader_wheel
from grader.labs.lab import load_lab
from grader.model import Record
from grader.report.formats.gradescope import Shown
from grader.submission.folder import load_listed

_SPARE_S = 30  # of Gradescope's time, for starting, and for writing the result
_SPARE_MB = 512  # of the container's memory, for the grader itself


class Container(Record):
    """What a container of theirs is given, and what the grader asks for."""

    minutes: int
    memory_mb: int
    sandbox: str


def gradescope_kit(
    lab: Path, hidden: Path | None, starter: Path, shown: Shown, container: Container
) -> kit.Kit:
    """starter: a right submission, graded when the image is built to see that it can grade.

    Raises LabError.
    """
    wheel, content = grader_wheel()
    values = {
        "wheel": wheel,
        "hidden": hidden is not None,
        "shown": shown,
        "sandbox": container.sandbox,
        "seconds": 60 * container.minutes - _SPARE_S,
        "memory_mb": container.memory_mb - _SPARE_MB,
    }
    main = load_lab(lab).problem.interface.main
    check = load_listed(starter, "check", main)
    return {
        "setup.sh": kit.script("gradescope_setup.sh", values),
        "run_autograder": kit.script("gradescope_run.sh", values),
        "grade_here.sh": kit.script("gradescope_grade.sh", values),
        wheel: content,
        **kit.lab_files(lab, hidden),
        **{f"check/{name}": kit.KitFile(content=it) for name, it in check.contents.items()},
    }
