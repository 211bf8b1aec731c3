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
from collections import defaultdict
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

from grader.base import UsageError, one_line
from grader.labs import DEFAULT_LAB, REFERENCE, Lab, instead_of, load_lab, provided, shipped_labs
from ptxsim.message import phrase
from ptxsim.records import Record

_FOLDER = re.compile(r"(\d+)_\w+")
_TITLE = re.compile(r"Rung \d+(?P<trap> \(a trap\))?: (?P<title>.+)")
_LABEL = re.compile(r"(?P<label>[A-Z][a-z]+): +(?P<text>.+)")


class Rung(Record):
    """Facts from a rung's header. Texts are "" where the header has none."""

    number: int
    name: str  # of its folder
    title: str
    trap: bool  # teaches what not to do; may be slower than the rung before
    changed: str  # against the rung before
    why: str


def find_rung(named: str) -> tuple[Path, ...]:
    """The .cu files of the rung ``06_tile32``, or with its lab ``hgemm/04_swizzled``: of the first
    lab, here or in the package, that has it. Raises UsageError."""
    known: defaultdict[str, list[Path]] = defaultdict(list)
    for place in provided(REFERENCE):
        for lab in sorted(place.iterdir(), key=lambda each: each.name != DEFAULT_LAB.stem):
            for rung in find_rungs(lab):
                files = sorted((lab / rung.name).glob("*.cu"))
                for word in (rung.name, f"{lab.name}/{rung.name}"):
                    known[word] = known[word] or files
    if named not in known:
        unknown = phrase("{name}: no such rung; {remedy}", name=one_line(named))
        raise UsageError(unknown.given(remedy=instead_of(named, tuple(known))))
    return tuple(known[named])


def find_reference(named: Path | None, lab: str, *alike: str) -> Path:
    """The folder of a lab's rungs: the one named, else ``reference/<id of the lab>``, else that of
    a lab that is ``alike``: it asks the same of its kernels.

    ``reference/`` is looked for here and in the package. Raises UsageError when there is none.
    """
    if named:
        if not find_rungs(named):
            empty = phrase(
                "{named}: no rungs here; expected folders such as 01_naive, with a .cu file"
            )
            raise UsageError(empty.given(named=str(named)))
        return named
    places = provided(REFERENCE)
    for each in (lab, *alike):
        for place in places:
            if find_rungs(place / each):
                return place / each
    if places:
        none = phrase(
            "{place}/{lab}: no rungs of the lab {lab}; name their folder: grade ladder DIR"
        )
        raise UsageError(none.given(place=str(places[0]), lab=lab))
    raise UsageError.saying(
        "no {folder}/ here or in the grader's package: install the grader again, or name the "
        "folder: grade ladder DIR",
        folder=REFERENCE,
    )


def alike(lab: Lab) -> Iterator[str]:
    """The shipped labs that ask the same: a course's own lab file may have any id."""
    asked = lab.problem.info()
    for path in shipped_labs().values():
        shipped = load_lab(path)
        if shipped.problem.info().like(asked):
            yield shipped.id


def find_rungs(reference: Path) -> tuple[Rung, ...]:
    """Return the rungs by number; () when there is none."""
    found = [
        _rung(int(match[1]), file)
        for file in reference.glob("*/*.cu")
        if (match := _FOLDER.fullmatch(file.parent.name))
    ]
    return tuple(sorted(found, key=lambda rung: (rung.number, rung.name)))


def _rung(number: int, file: Path) -> Rung:
    trap = False
    parts: defaultdict[str, list[str]] = defaultdict(list)
    label = ""
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    for line in takewhile(lambda line: line.startswith("//"), lines):
        text = line[2:].strip()
        if match := _TITLE.fullmatch(text):
            trap, label, text = bool(match["trap"]), "title", match["title"]
        elif match := _LABEL.fullmatch(text):
            label, text = match["label"], match["text"]
        if text:
            parts[label].append(text)
    return Rung(
        number=number,
        name=file.parent.name,
        title=" ".join(parts["title"]).rstrip("."),
        trap=trap,
        changed=" ".join(parts["Changed"]),
        why=" ".join(parts["Why"]),
    )
