"""The rungs on disk: folders ``NN_name``, whose .cu file begins with a header that explains it.

::

    // Rung 6: the same tiles without bank conflicts.
    //
    // Changed:  each row of a tile is one float longer …
    // Why:      …

A rung that teaches what not to do says ``Rung 5 (a trap):``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from grader.errors import UsageError
from grader.labs.lab import Lab, load_lab, shipped_labs
from grader.model import Record, phrase
from grader.submission.provided import REFERENCE, provided

_FOLDER = re.compile(r"(\d+)_\w+")
_TITLE = re.compile(r"Rung \d+(?P<trap> \(a trap\))?: (?P<title>.+)")
_LABEL = re.compile(r"(?P<label>[A-Z][a-z]+): +(?P<text>.+)")


class Rung(Record):
    """What a rung's header says of it. Texts are "" where the header has none."""

    number: int
    name: str  # of its folder
    title: str
    trap: bool  # teaches what not to do; may be slower than the rung before
    changed: str  # against the rung before
    why: str


def find_reference(named: Path | None, lab: str, *alike: str) -> Path:
    """The folder of a lab's rungs: the one named, else ``reference/<id of the lab>``, else that of
    a lab that is ``alike``: it asks the same of its kernels.

    ``reference/`` is looked for here and in the package. Raises UsageError when there is none.
    """
    if named:
        if not find_rungs(named):
            raise UsageError(
                phrase(
                    "{named}: no rungs here; expected folders such as 01_naive, with a .cu file",
                    named=str(named),
                )
            )
        return named
    places = provided(REFERENCE)
    for each in (lab, *alike):
        for place in places:
            if find_rungs(place / each):
                return place / each
    if places:
        raise UsageError(
            phrase(
                "{place}/{lab}: no rungs of the lab {lab}; name their folder: grade ladder DIR",
                place=str(places[0]),
                lab=lab,
            )
        )
    raise UsageError(
        phrase(
            "no {folder}/ here or in the grader's package: install the grader again, or name the "
            "folder: grade ladder DIR",
            folder=REFERENCE,
        )
    )


def alike(lab: Lab) -> Iterator[str]:
    """The shipped labs that ask the same: a course's own lab file may have any id."""
    asked = lab.problem.info()
    for path in shipped_labs().values():
        shipped = load_lab(path)
        if shipped.problem.info().like(asked):
            yield shipped.id


def find_rungs(reference: Path) -> tuple[Rung, ...]:
    """By number; () when there is none."""
    found = [
        _rung(int(match[1]), file)
        for file in reference.glob("*/*.cu")
        if (match := _FOLDER.fullmatch(file.parent.name))
    ]
    return tuple(sorted(found, key=lambda rung: (rung.number, rung.name)))


def _rung(number: int, file: Path) -> Rung:
    trap = False
    parts: dict[str, list[str]] = {}
    current: list[str] = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        if not line.startswith("//"):
            break
        text = line[2:].strip()
        if match := _TITLE.fullmatch(text):
            trap = bool(match["trap"])
            current = parts.setdefault("title", [])
            current.append(match["title"])
        elif match := _LABEL.fullmatch(text):
            current = parts.setdefault(match["label"], [])
            current.append(match["text"])
        elif text:
            current.append(text)
    return Rung(
        number=number,
        name=file.parent.name,
        title=" ".join(parts.get("title", ())).rstrip("."),
        trap=trap,
        changed=" ".join(parts.get("Changed", ())),
        why=" ".join(parts.get("Why", ())),
    )
