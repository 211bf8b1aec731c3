"""``grade new NAME``: a copy of starter/ for a student to begin with."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

import grader
from grader.errors import UsageError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def new_submission(name: str, base: Path) -> Path:
    """Copy starter/ to ``base``/submissions/``name`` and return the new folder.

    It looks for starter/ in ``base``, then beside the grader's package. Raises UsageError if the
    name is not allowed, the folder exists or there is no starter/.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not allowed as a name: use letters, digits, '.', '_' and '-', "
            "starting with a letter or digit, at most 64"
        )
    starter = find_starter(base)
    target = base / "submissions" / name
    if target.exists() or target.is_symlink():
        raise UsageError(f"{target} already exists; choose another name or remove it first")
    try:
        target.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=target.parent) as scratch:
            copy = Path(scratch) / name
            shutil.copytree(starter, copy)
            copy.rename(target)  # all or nothing, and never over an existing folder
    except OSError as error:
        raise UsageError(f"{target}: cannot be created: {error.strerror}") from None
    return target


def find_starter(base: Path) -> Path:
    """starter/ in ``base``, else beside the grader's package. Raises UsageError."""
    candidates = [base / "starter", Path(grader.__file__).parents[1] / "starter"]
    for candidate in candidates:
        if (candidate / "sgemm.cu").is_file():
            return candidate
    raise UsageError(
        f"no starter/ in {base}: run this in a checkout of the grader (git clone), "
        "where starter/sgemm.cu lies"
    )
