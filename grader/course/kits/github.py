"""A workflow for GitHub Actions that grades on every push.

It keeps the names that GitHub Classroom looked for (https://github.com/classroom-resources/
autograding-grading-reporter, read 2026-11-22, which says that Classroom has been shut down): the
workflow "Autograding Tests" with the one job "run-autograding-tests". It works in any repository.
"""

from __future__ import annotations

import json
from pathlib import Path

from grader.course.kits import kit

WORKFLOW = ".github/workflows/classroom.yml"
LAB = f".github/{kit.LAB}"


def github_kit(
    lab: Path, *, folder: str, requirement: str, minutes: int, code_scanning: bool
) -> kit.Kit:
    """folder: of sgemm.cu in the repository. requirement: what pip installs."""
    values = {
        "folder": json.dumps(folder),  # a YAML string too
        "requirement": json.dumps(requirement),
        "minutes": minutes,
        "code_scanning": code_scanning,
        "lab": LAB,
    }
    files = kit.lab_files(lab, None, secret=False)
    return {
        WORKFLOW: kit.KitFile(content=kit.text("classroom.yml", values).encode()),
        **{f".github/{name}": file for name, file in files.items()},
    }
