"""A problem for CSOJ, ZJUSCT's judge: an image that grades, and the problem's record.

Format: https://github.com/ZJUSCT/CSOJ, docs/configuration/problem-config.md (read 2026-11-22).
Each step of a workflow runs in a container as UID 1000 without network; /mnt/work holds the
submitted files. The last step reports the score.
"""

from __future__ import annotations

import json
from pathlib import Path

from grader.course.kits import kit
from grader.course.kits.wheel import grader_wheel
from grader.labs.lab import load_lab


def csoj_kit(
    lab: Path, hidden: Path | None, *, image: str, minutes: int, memory_mb: int, sandbox: str
) -> kit.Kit:
    """image: the name under which the cluster finds what the Dockerfile builds."""
    wheel, content = grader_wheel()
    labs = kit.lab_files(lab, hidden)
    values = {
        "wheel": wheel,
        "labs": " ".join(labs),
        "hidden": hidden is not None,
        "seconds": 60 * minutes - 10,
        "memory_mb": memory_mb - 512,
        "sandbox": sandbox,
    }
    known = load_lab(lab)
    problem = {
        "id": known.id,
        "name": known.id,
        "cluster": "default-cluster",
        "cpu": 2,
        "memory": memory_mb,
        "upload": {"editor": True, "editor_files": [known.problem.interface.main], "maxsize": 1},
        "score": {"mode": "score"},
        "workflow": [
            {
                "name": "Grade",
                "image": image,
                "root": False,
                "timeout": 60 * minutes,
                "show": hidden is None and known.hidden is None,  # what a failure prints
                "network": False,
                "steps": [["/opt/sgemm-grader/judge"]],
            }
        ],
        "description": "",
    }
    return {
        "Dockerfile": kit.KitFile(content=kit.text("csoj.Dockerfile", values).encode()),
        "judge": kit.script("csoj_judge.sh", values),
        "problem.json": kit.KitFile(content=(json.dumps(problem, indent=2) + "\n").encode()),
        wheel: content,
        **labs,
    }
