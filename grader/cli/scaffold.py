"""``grade new NAME``: a copy of a lab's starter for a student to begin with."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from grader.compile.editor_flags import FILE
from grader.errors import UsageError
from grader.labs.lab import Lab
from grader.language import ENGLISH, Language
from grader.language.comments import translated
from grader.model import phrase
from grader.submission.provided import provided

STARTER, STARTERS = "starter", "starters"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def new_submission(
    name: str, base: Path, lab: Lab, flags: str | None, language: Language = ENGLISH
) -> Path:
    """Copy the lab's starter to ``base``/submissions/``name`` and return the new folder.

    Its comments and documents are in ``language``, as far as there is a translation.

    flags: for compile_flags.txt; None: without. Raises UsageError if the name is not allowed, the
    folder exists or there is no starter.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            phrase(
                "{name} is not allowed as a name: use letters, digits, '.', '_' and '-', starting "
                "with a letter or digit, at most 64",
                name=repr(name),
            )
        )
    starter = find_starter(base, lab)
    target = base / "submissions" / name
    if target.exists() or target.is_symlink():
        raise UsageError(
            phrase(
                "{folder} already exists; choose another name or remove it first",
                folder=str(target),
            )
        )
    try:
        target.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=target.parent) as scratch:
            copy = Path(scratch) / name
            shutil.copytree(starter, copy)
            _speak(copy, language)
            if flags is not None:
                (copy / FILE).write_text(flags, encoding="utf-8")
            copy.rename(target)  # all or nothing, and never over an existing folder
    except OSError as error:
        raise UsageError(
            phrase(
                "{folder}: cannot be created: {why}", folder=str(target), why=str(error.strerror)
            )
        ) from None
    return target


def _speak(folder: Path, language: Language) -> None:
    """Translate comments, and keep each document in one language: ``README.zh.md``, or the README
    that there is."""
    if language is not ENGLISH:
        for source in (*folder.rglob("*.cu"), *folder.rglob("*.cuh")):
            text = source.read_text(encoding="utf-8", errors="surrogateescape")
            text = translated(text, language)
            source.write_text(text, encoding="utf-8", errors="surrogateescape")
    for document in folder.glob("*.??.md"):
        name, tag, _ = document.name.rsplit(".", 2)
        if tag == language.code.partition("_")[0]:
            document.replace(folder / f"{name}.md")
        else:
            document.unlink()


def find_starter(base: Path, lab: Lab) -> Path:
    """The folder starters/ID of the lab, else starter/ if its interface is the lab's: in ``base``,
    beside the lab's own file, then in the grader's package. Raises UsageError."""
    main, header = lab.problem.interface.main, lab.problem.interface.header
    beside = [file.parent / STARTERS] if (file := lab.problem_ref.file) else []
    for place in (base / STARTERS, *beside, *provided(STARTERS)):
        folder = place / lab.id
        if (folder / main).is_file():
            return folder
    for folder in (base / STARTER, *provided(STARTER)):
        if (folder / main).is_file() and _same(folder / header, lab.problem.interface.text):
            return folder
    raise UsageError(
        phrase(
            "no starter of the lab {lab} in {folder} or in the grader's package: put {main} into "
            "{starters}/",
            lab=lab.id,
            folder=str(base),
            main=main,
            starters=f"{STARTERS}/{lab.id}",
        )
    )


def _same(header: Path, text: str) -> bool:
    return header.is_file() and header.read_text(errors="replace") == text
