"""How to install what is missing, in words for a checkout or for an installed package."""

from __future__ import annotations

from pathlib import Path

import grader
from grader.model import Message, phrase, verbatim


def install(extra: str = "") -> Message:
    """The command that brings the grader's dependencies, or one of its extras."""
    if (Path(grader.__file__).parents[1] / "pyproject.toml").is_file():
        what = f"'.[{extra}]'" if extra else "."
        command = f"pip install -e {what}"
        return phrase("{command} in the grader's checkout", command=command)
    what = f"'sgemm-grader[{extra}]'" if extra else "--force-reinstall sgemm-grader"
    return verbatim(f"pip install {what}")
