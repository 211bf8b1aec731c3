"""The rungs of the reference ladder, on disk.

A rung is a folder ``NN_name``, whose .cu file begins with a header that explains it::

    // Rung 6: the same tiles without bank conflicts.
    //
    // Changed:  each row of a tile is one float longer …
    // Why:      …

A rung that teaches what not to do says ``Rung 5 (a trap):``. ladder.toml beside the rungs has the
numbers of those that are the lesson; without it all are.
"""

import difflib
import heapq
import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path

import msgspec

from grader import base
from grader.labs import DEFAULT_LAB, REFERENCE, Lab, load_lab, provided, shipped_labs
from grader.results.result import RungFacts
from ptxsim.plan import Record
from ptxsim.text import phrase

_LESSON = "ladder.toml"
_SUGGESTED = 3  # rungs, where there is none of a name
_NUMBERED = re.compile(r"(\d+)_\w+")
_TITLE = re.compile(r"Rung \d+(?P<trap> \(a trap\))?: (?P<title>.+)")
_LABEL = re.compile(r"(?P<label>[A-Z][a-z]+): +(?P<text>.+)")


class Rung(RungFacts):
    why: str
    lesson: bool = True  # one of those to read first; the others are detours and research


class _Lesson(Record):
    """ladder.toml."""

    lesson: tuple[int, ...]  # numbers of rungs


def find_rung(named: str) -> tuple[Path, ...]:
    """The .cu files of the rung ``06_tile32`` or ``6``, or with its lab ``hgemm/04_swizzled``: of
    the first lab, here or in the package, that has it. Raises UsageError."""
    known: defaultdict[str, list[Path]] = defaultdict(list)
    for place in provided(REFERENCE):
        for lab in sorted(place.iterdir(), key=lambda each: each.name != DEFAULT_LAB.stem):
            for rung in find_rungs(lab):
                files = sorted((lab / rung.name).glob("*.cu"))
                for name in (rung.name, rung.name.partition("_")[0], str(rung.number)):
                    for key in (name, f"{lab.name}/{name}"):
                        known[key] = known[key] or files
    if named not in known:
        names = [each for each in known if "/" in each and "_" in each]
        near = heapq.nlargest(_SUGGESTED, names, key=partial(_likeness, named))
        unknown = phrase(
            "{name}: no such rung; did you mean {near}? grade rung lists the lesson, and with a "
            "lab's name that lab's",
            name=base.one_line(named),
            near=", ".join(near),
        )
        raise base.UsageError(unknown)
    return tuple(known[named])


def _likeness(named: str, rung: str) -> float:
    """How much what was named is like a rung's name with its lab, without it, or a word of it."""
    alone = rung.partition("/")[2]
    return max(
        difflib.SequenceMatcher(None, named, each).ratio()
        for each in (rung, alone, *alone.split("_"))
    )


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
            raise base.UsageError(empty.given(named=str(named)))
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
        raise base.UsageError(none.given(place=str(places[0]), lab=lab))
    raise base.UsageError.saying(
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
    """Return the rungs by number; () when there is none. Raises UsageError for a ladder.toml that
    says something else than which rungs are the lesson."""
    files = {
        file: int(match[1])
        for file in reference.glob("*/*.cu")
        if (match := _NUMBERED.fullmatch(file.parent.name))
    }
    lesson = _lesson(reference / _LESSON, files.values())
    found = [_rung(number, file, lesson=number in lesson) for file, number in files.items()]
    return tuple(sorted(found, key=lambda rung: (rung.number, rung.name)))


def _lesson(path: Path, numbers: Collection[int]) -> Collection[int]:
    if not path.exists():
        return numbers
    try:
        lesson = base.convert(msgspec.toml.decode(path.read_bytes()), _Lesson).lesson
    except msgspec.DecodeError as error:
        raise base.UsageError.saying("{path}: {error}", path=str(path), error=str(error)) from error
    if unknown := set(lesson) - set(numbers):
        raise base.UsageError.saying(
            "{path}: no rung {number}", path=str(path), number=min(unknown)
        )
    return lesson


def find_ladder(lab: str) -> tuple[Rung, ...]:
    """The rungs of the ladder of this name, here or in the package; () when there is none."""
    ladders = (find_rungs(place / lab) for place in provided(REFERENCE))
    return next(filter(None, ladders), ())


def _rung(number: int, file: Path, *, lesson: bool) -> Rung:
    trap = False
    parts: defaultdict[str, list[str]] = defaultdict(list)
    label = ""
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    for line in itertools.takewhile(lambda line: line.startswith("//"), lines):
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
        lesson=lesson,
    )
