"""The submissions in a folder, in any of three layouts.

- one subfolder per student, named after the student
- files such as ``alice.cu``, each a complete submission
- an export from Gradescope: folders ``submission_123`` and a ``submission_metadata.yml``
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from grader.base import UsageError, decode, moment, one_line
from grader.labs import Entrant, read
from grader.results import store
from ptxsim.plan import Record
from ptxsim.text import Message, enumerated, phrase, verbatim

METADATA = "submission_metadata.yml"
_CREATED = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)[ T](?P<time>\d\d:\d\d:\d\d)(?:\.\d+)?"
    r" ?(?P<zone>Z|UTC|[+-]\d\d:\d\d)?"
)


def find_submissions(folder: Path, main: str) -> tuple[tuple[Entrant, ...], tuple[Message, ...]]:
    """The submissions in ``folder`` by student, and a line for each entry without a known student.

    main: the file that a submission holds. Raises UsageError when there are none.
    """
    try:
        with os.scandir(folder) as found:
            shown = [entry for entry in found if not entry.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError.saying("{folder}: no such folder", folder=str(folder)) from None
    except OSError as error:
        raise _unreadable(folder, error) from None
    visible = sorted(shown, key=lambda entry: entry.name)
    if any(entry.name == main and not entry.is_dir(follow_symlinks=False) for entry in visible):
        one = phrase("{folder}: is one submission; grade it with: grade {folder}")
        raise UsageError(one.given(folder=str(folder)))
    exported = _exported(folder / METADATA)
    entrants = []
    for entry in visible:
        is_folder = entry.is_dir(follow_symlinks=False)
        # A link counts, and will be rejected without following it.
        if is_folder or entry.is_symlink() or entry.name.endswith(".cu"):
            name = entry.name if is_folder else entry.name.removesuffix(".cu")
            own = Entrant(student=name, source=folder / entry.name)
            entrants.append(exported.get(entry.name, own))
    if not entrants:
        raise UsageError.saying("{folder}: holds neither folders nor .cu files", folder=str(folder))
    known, complaints = _reject_clashes(entrants)
    if not known:
        raise UsageError(complaints[0])
    return tuple(sorted(known, key=lambda entrant: entrant.student)), tuple(complaints)


def _unreadable(place: Path, error: OSError) -> UsageError:
    words = phrase("{place}: cannot be read: {why}")
    return UsageError(words.given(place=str(place), why=str(error.strerror)))


def _reject_clashes(entrants: Sequence[Entrant]) -> tuple[list[Entrant], list[Message]]:
    """The entrants with unique, valid names; and the reasons for leaving out the others."""
    by_student: dict[str, list[Entrant]] = {}
    for entrant in entrants:
        by_student.setdefault(entrant.student, []).append(entrant)
    known, complaints = [], []
    for student, theirs in by_student.items():
        sources = enumerated(verbatim(one_line(entrant.source)) for entrant in theirs)
        if any("\ud800" <= char <= "\udfff" for char in student):
            complaints.append(
                phrase("{sources}: the name is not UTF-8; rename it", sources=sources)
            )
        elif len(theirs) > 1:
            both = phrase("{sources} are both of {student}; keep one", sources=sources)
            complaints.append(both.given(student=one_line(student)))
        else:
            known += theirs
    return known, complaints


def _exported(metadata: Path) -> Mapping[str, Entrant]:
    """Folder → student and time as Gradescope's export tells; nothing without its file."""
    try:
        content = read(metadata)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unreadable(metadata, error) from None
    try:
        # BaseLoader: all values stay the text they are, student numbers with leading zeros too.
        document = yaml.load(content, yaml.BaseLoader)
        found = {}
        for folder, entry in document.items():
            student, source = _submitters(entry), metadata.parent / folder
            found[folder] = Entrant(student=student, source=source, submitted=_created(entry))
        return found
    except (yaml.YAMLError, RecursionError, AttributeError, KeyError, TypeError, ValueError):
        odd = phrase(
            "{file}: expected Gradescope's list of submissions with their :submitters: and "
            ":created_at:; export it again, or remove it to name students after their folders"
        )
        raise UsageError(odd.given(file=str(metadata))) from None


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
    keys = (":sid", ":email", ":name")
    people = entry[":submitters"]
    named = [next((each[key] for key in keys if each.get(key)), "") for each in people]
    if not all(named) or not named:
        raise KeyError(":submitters")
    return "+".join(sorted(named))


# --- manifest ----------------------------------------------------------------------------------

_PART = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")


class _Manifest(Record):
    students: tuple[str, ...]  # to grade, in the order of the roll


def write_manifest(path: Path, students: Sequence[str]) -> None:
    """Raises StoreError."""
    store.write_document(path, _Manifest(students=tuple(students)))


def read_manifest(path: Path) -> tuple[str, ...]:
    """The students to grade. Raises UsageError naming the file."""
    try:
        return decode(read(path), _Manifest).students
    except OSError as error:
        raise _unreadable(path, error) from None
    except (msgspec.MsgspecError, ValueError) as error:  # ValueError: not UTF-8
        none = phrase("{path}: no manifest of a class: {error}", path=str(path), error=str(error))
        raise UsageError(none) from None


def read_part(text: str) -> tuple[int, int]:
    """``2/10``: the third of ten parts. Raises UsageError."""
    found = _PART.fullmatch(text)
    if not found or not int(found[1]) < int(found[2]):
        no = phrase("--part {text}: expected I/N with I from 0 to N-1, such as 0/10", text=text)
        raise UsageError(no)
    return int(found[1]), int(found[2])
