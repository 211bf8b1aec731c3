"""How to install what is missing, in words for a checkout or for an installed package."""

from __future__ import annotations

from pathlib import Path

import grader


def install(extra: str = "") -> str:
    """The command that brings the grader's dependencies, or one of its extras."""
    if (Path(grader.__file__).parents[1] / "pyproject.toml").is_file():
        what = f"'.[{extra}]'" if extra else "."
        return f"pip install -e {what} in the grader's checkout"
    what = f"'sgemm-grader[{extra}]'" if extra else "--force-reinstall sgemm-grader"
    return f"pip install {what}"
