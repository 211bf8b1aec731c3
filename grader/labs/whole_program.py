"""``kind: program`` in a lab file: a hand-in with its own ``main()``, judged by its output.

The student's files and the course's lie together in the lab's starter, ``starters/ID/`` beside the
lab file or in the grader's package; the course's are never taken from a submission. A solution in
``reference/ID/`` computes what must come out where the file does not say it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

import grader
from grader.base import LabError
from grader.labs.course_rules import Rubric, TimeRules
from grader.labs.scoring_rules import Positive
from grader.labs.shape import Architecture, Identifier, Limits, Topic, common_contradictions
from grader.labs.submission import REFERENCE, SUFFIXES, read
from grader.labs.yaml_file import at, wrong
from ptxsim.plan import Record
from ptxsim.text import Message, phrase

STARTERS = "starters"
SEED = "{seed}"
COMPILED = (".cu", ".cpp", ".cc", ".cxx", ".c")
_Text = Annotated[str, Meta(pattern=r"^[^\x00\ud800-\udfff]*$")]  # that a process can be given
_Path = Annotated[str, Meta(pattern=r"^(?!\.)[\w.+-]+(/(?!\.)[\w.+-]+)*$", max_length=200)]


class ProgramFiles(Record):
    student: Annotated[tuple[_Path, ...], Meta(min_length=1)]  # the first is the one to hand in
    course: tuple[_Path, ...] = ()


class ProgramBuild(Record):
    """How nvcc compiles all files of both sides that are sources."""

    std: Literal["c++14", "c++17", "c++20"] = "c++17"
    options: tuple[str, ...] = ()  # of nvcc, such as -I and -D
    libraries: tuple[Annotated[str, Meta(pattern=r"^\w+$")], ...] = ()  # as of -l


class OutputRules(Record):
    """Differences between texts that count."""

    spaces: Literal["lines", "any", "exact"] = "lines"  # lines: but for those at their ends
    tolerance: Annotated[float, Meta(ge=0)] | None = None  # of numbers, relative above 1


class ProgramCase(Record):
    """One run. SEED stands for a number that is drawn for it; None: the solution computes it."""

    name: Identifier
    arguments: tuple[_Text, ...] = ()
    stdin: _Text = ""
    given: tuple[_Path, ...] = ()  # files of the starter that the program can read
    stdout: str | None = None
    files: Mapping[str, str | None] = msgspec.field(default_factory=dict)  # that it writes
    hidden: bool = False
    weight: Positive = 1

    @property
    def asks_solution(self) -> bool:
        return self.stdout is None or None in self.files.values()


class ProgramFile(Record):
    """The lab file."""

    id: Identifier
    kind: Literal["program"]
    title: str
    files: ProgramFiles
    cases: Annotated[tuple[ProgramCase, ...], Meta(min_length=1)]
    build: ProgramBuild = ProgramBuild()
    output: OutputRules = OutputRules()
    reference: _Path | None = None  # the solution's folder below reference/ID/
    launches: Annotated[int, Meta(ge=0)] = 1  # at least so many, on which the output depends
    findings: Literal["fail", "warn"] = "fail"
    architectures: Annotated[tuple[Architecture, ...], Meta(min_length=1)] = (80,)
    limits: Limits = Limits()
    topic: Topic | None = None
    time: TimeRules | None = None
    language: str | None = None
    rubric: Rubric | None = None


class ProgramTask(Record):
    """A checked lab file with the files that it names."""

    file: ProgramFile
    starter: Path  # a folder
    course: Mapping[str, bytes]  # by name
    given: Mapping[str, bytes]
    solution: Mapping[str, bytes]  # the student's files of the solution; empty: there is none

    @property
    def hidden(self) -> bool:
        return any(case.hidden for case in self.file.cases)

    def files(self) -> dict[str, bytes]:
        """All that the lab file needs beside it, by paths."""
        starter = f"{STARTERS}/{self.file.id}"
        solved = f"{REFERENCE}/{self.file.id}/{self.file.reference}"
        begun = [name for name in self.file.files.student if (self.starter / name).is_file()]
        own = _read(self.starter, begun, "files.student")
        parts = ((starter, {**own, **self.course, **self.given}), (solved, self.solution))
        return {f"{place}/{name}": it for place, part in parts for name, it in part.items()}


def find_task(file: ProgramFile, beside: Path) -> ProgramTask:
    """beside: the lab file's folder. Raises LabError that does not name the lab file."""
    if mistake := next(_contradictions(file), None):
        raise LabError(mistake)
    starter = _folder(beside, STARTERS, file.id, "files")
    given = {name for case in file.cases for name in case.given}
    solution: Mapping[str, bytes] = {}
    if file.reference is not None:
        folder = _folder(beside, REFERENCE, f"{file.id}/{file.reference}", "reference")
        solution = _read(folder, file.files.student, "reference")
    return ProgramTask(
        file=file,
        starter=starter,
        course=_read(starter, file.files.course, "files.course"),
        given=_read(starter, sorted(given), "cases[].given"),
        solution=solution,
    )


def _contradictions(file: ProgramFile) -> Iterator[Message]:
    names: set[str] = set()
    for i, case in enumerate(file.cases):
        if case.name in names:
            yield wrong(f"cases[{i}].name", "program.taken", name=case.name)
        names.add(case.name)
        if file.reference is None and case.asks_solution:
            yield wrong(f"cases[{i}]", "program.no-output")
        texts = (case.stdout, *case.files.values())
        drawn = any(SEED in word for word in (*case.arguments, case.stdin))
        if drawn and any(text is not None for text in texts):
            yield wrong(f"cases[{i}]", "program.seed", seed=SEED)
        if odd := [name for name in case.files if not re.fullmatch(r"\w[\w.+-]*", name)]:
            yield wrong(f"cases[{i}].files", "program.name", name=odd[0])
    yield from common_contradictions(file)
    if all(case.hidden for case in file.cases):
        yield wrong("cases", "program.all-hidden")
    if both := {*file.files.student} & {*file.files.course}:
        yield wrong("files.course", "program.both", name=min(both))
    if odd := [name for name in file.files.student if not name.endswith(SUFFIXES)]:
        yield wrong("files.student", "program.no-source", name=odd[0])


def _folder(beside: Path, kind: str, name: str, field: str) -> Path:
    # Not the current folder's, which may be a student's: everybody's output depends on these files.
    for place in (beside / kind, Path(grader.__file__).parent / "provided" / kind):
        if (place / name).is_dir():
            return place / name
    raise LabError(wrong(field, "program.no-folder", folder=f"{kind}/{name}"))


def _read(folder: Path, names: tuple[str, ...] | list[str], field: str) -> Mapping[str, bytes]:
    try:
        return {name: read(folder / name) for name in names}
    except OSError as error:
        what = phrase("{place}: {what}", place=str(folder), what=str(error))
        raise LabError(at(field, what)) from None
