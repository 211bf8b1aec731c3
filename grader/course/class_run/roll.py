"""The submissions in a folder, in any of three layouts.

- one subfolder per student, named after the student
- files such as ``alice.cu``, each a complete submission
- an export from Gradescope: folders ``submission_123`` and a ``submission_metadata.yml``
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from grader.errors import UsageError, one_line
from grader.model import Record, phrase
from grader.model.moments import moment
from grader.submission.reading import read

METADATA = "submission_metadata.yml"
_CREATED = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)[ T](?P<time>\d\d:\d\d:\d\d)(?:\.\d+)?"
    r" ?(?P<zone>Z|UTC|[+-]\d\d:\d\d)?"
)


class Entrant(Record):
    """One student's work as it was handed in."""

    student: str
    source: Path  # a folder, or one file that is the whole submission; not yet looked at
    submitted: str | None = None  # when it was handed in, ISO 8601 with a zone; null: not known


def call_roll(folder: Path, main: str) -> tuple[tuple[Entrant, ...], tuple[str, ...]]:
    """The submissions in ``folder`` by student, and a line for each entry without a known student.

    main: the file that a submission holds.

    Raises UsageError when there are none.
    """
    try:
        with os.scandir(folder) as found:
            visible = sorted(
                (entry for entry in found if not entry.name.startswith(".")),
                key=lambda entry: entry.name,
            )
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(phrase("{folder}: no such folder", folder=str(folder))) from None
    except OSError as error:
        raise UsageError(
            phrase("{place}: cannot be read: {why}", place=str(folder), why=str(error.strerror))
        ) from None
    if any(entry.name == main and not entry.is_dir(follow_symlinks=False) for entry in visible):
        raise UsageError(
            phrase("{folder}: is one submission; grade it with: grade {folder}", folder=str(folder))
        )
    exported = _exported(folder / METADATA)
    entrants = [
        exported.get(entry.name, Entrant(student=_student(entry), source=folder / entry.name))
        for entry in visible
        if _handed_in(entry)
    ]
    if not entrants:
        raise UsageError(
            phrase("{folder}: holds neither folders nor .cu files", folder=str(folder))
        )
    known, complaints = _told_apart(entrants)
    if not known:
        raise UsageError(complaints[0])
    return tuple(sorted(known, key=lambda entrant: entrant.student)), tuple(complaints)


def _handed_in(entry: os.DirEntry[str]) -> bool:
    """Whether it is a submission. A link counts, and will be rejected without following it."""
    is_folder = entry.is_dir(follow_symlinks=False) or entry.is_symlink()
    return is_folder or entry.name.endswith(".cu")


def _student(entry: os.DirEntry[str]) -> str:
    flat = entry.name.endswith(".cu") and not entry.is_dir(follow_symlinks=False)
    return entry.name.removesuffix(".cu") if flat else entry.name


def _told_apart(entrants: Sequence[Entrant]) -> tuple[list[Entrant], list[str]]:
    """The entrants with unique, valid names; and the reasons for leaving out the others."""
    by_student: dict[str, list[Entrant]] = {}
    for entrant in entrants:
        by_student.setdefault(entrant.student, []).append(entrant)
    known, complaints = [], []
    for student, theirs in by_student.items():
        sources = " and ".join(one_line(entrant.source) for entrant in theirs)
        if not _is_utf8(student):
            complaints.append(f"{sources}: the name is not UTF-8; rename it")
        elif len(theirs) > 1:
            complaints.append(f"{sources} are both of {one_line(student)}; keep one")
        else:
            known += theirs
    return known, complaints


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _exported(metadata: Path) -> Mapping[str, Entrant]:
    """Folder → student and time as Gradescope's export tells; nothing without its file."""
    try:
        content = read(metadata)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(
            phrase("{place}: cannot be read: {why}", place=str(metadata), why=str(error.strerror))
        ) from None
    try:
        # BaseLoader: all values stay the text they are, student numbers with leading zeros too.
        document = yaml.load(content, yaml.BaseLoader)
        return {
            folder: Entrant(
                student=_submitters(entry),
                source=metadata.parent / folder,
                submitted=_created(entry),
            )
            for folder, entry in document.items()
        }
    except (
        *(yaml.YAMLError, RecursionError),
        *(AttributeError, KeyError, TypeError, ValueError),
    ):
        raise UsageError(
            phrase(
                "{file}: expected Gradescope's list of submissions with their :submitters: "
                "and :created_at:; export it again, or remove it to name students after their "
                "folders",
                file=str(metadata),
            )
        ) from None


def _created(entry: Mapping[str, Any]) -> str | None:
    """``2026-01-30 12:00:00.123456789 -08:00`` as ISO 8601. Raises ValueError."""
    text = entry.get(":created_at")
    if not text:
        return None
    match = _CREATED.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    zone = match["zone"] or "+00:00"
    zone = "+00:00" if zone in ("Z", "UTC") else zone
    return moment(f"{match['date']}T{match['time']}{zone}").isoformat()


def _submitters(entry: Mapping[str, Any]) -> str:
    """Student number, else e-mail, else name; of a group, all of them."""
    people = entry[":submitters"]
    named = [
        next((person[key] for key in (":sid", ":email", ":name") if person.get(key)), "")
        for person in people
    ]
    if not all(named) or not named:
        raise KeyError(":submitters")
    return "+".join(sorted(named))
