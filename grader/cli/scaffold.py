"""``grade new NAME``: a copy of starter/ for a student to begin with."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from grader.compile.editor_flags import FILE
from grader.errors import UsageError
from grader.submission.folder import MAIN
from grader.submission.provided import provided

STARTER = "starter"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def new_submission(name: str, base: Path, flags: str | None) -> Path:
    """Copy starter/ to ``base``/submissions/``name`` and return the new folder.

    flags: for compile_flags.txt; None: without. Raises UsageError if the name is not allowed, the
    folder exists or there is no starter/.
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
            if flags is not None:
                (copy / FILE).write_text(flags, encoding="utf-8")
            copy.rename(target)  # all or nothing, and never over an existing folder
    except OSError as error:
        raise UsageError(f"{target}: cannot be created: {error.strerror}") from None
    return target


def find_starter(base: Path) -> Path:
    """starter/ in ``base``, else the package's. Raises UsageError."""
    for candidate in (base / STARTER, *provided(STARTER)):
        if (candidate / MAIN).is_file():
            return candidate
    raise UsageError(
        f"no {STARTER}/ in {base} or in the grader's package: install the grader again"
    )
