"""course.yaml → ``Term``: labs with weights and dates, and the late days that students have."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from grader.base import LabError, convert
from grader.labs.course_rules import TimeRules, wrong_times
from grader.labs.lab import Lab, load_lab, shipped_labs
from grader.labs.scoring_rules import Positive
from grader.labs.yaml_file import at, explain, instead_of, parse, read_file, say, wanted, wrong
from ptxsim.plan import Record
from ptxsim.text import phrase

_Count = Annotated[int, Meta(ge=0)]


class CourseLab(Record):
    """A lab as course.yaml names it. Paths are relative to that file."""

    lab: str  # its file, or its name in ``grade labs``
    weight: Positive = 1  # only the ratio to the others' matters
    due: str | None = None  # ISO 8601 with a zone; instead of the lab file's
    roster: tuple[str, ...] = ()  # tables of who hands it in, and when


class Course(Record):
    labs: Annotated[tuple[CourseLab, ...], Meta(min_length=1)]  # in the order of their dates
    drop_lowest: _Count = 0  # labs that do not count
    late_days: _Count = 0  # of each student, for all labs


class TermLab(NamedTuple):
    lab: Lab  # ``time`` has the date of course.yaml
    file: Path
    weight: float
    rosters: tuple[Path, ...]


class Term(NamedTuple):
    labs: tuple[TermLab, ...]
    drop_lowest: int
    late_days: int


def load_term(path: Path) -> Term:
    """Raises LabError, one line, for anything wrong with the file or one of its labs."""
    document = parse(path, read_file(path), Path("docs/instructor.md"))
    try:
        course = convert(document, Course)
        return Term(tuple(_labs(course, path.parent)), course.drop_lowest, course.late_days)
    except msgspec.ValidationError as error:
        raise LabError(at(str(path), explain(error, document, Course, {}))) from None
    except LabError as error:
        raise LabError(at(str(path), error.message)) from None


def _labs(course: Course, folder: Path) -> Iterator[TermLab]:
    ids: list[str] = []
    last = None
    for i, given in enumerate(course.labs):
        file = shipped_labs().get(given.lab, folder / given.lab)
        if not file.is_file():
            near = [*shipped_labs(), *(each.name for each in folder.glob("*.yaml"))]
            unknown = phrase("no such lab, and no such file; {remedy}")
            raise LabError(at(f"labs[{i}].lab", unknown.given(remedy=instead_of(given.lab, near))))
        lab = load_lab(file)
        time = replace(lab.time or TimeRules(), due=given.due or (lab.time and lab.time.due))
        for mistake in wrong_times(time, f"labs[{i}]"):
            raise LabError(mistake)
        if lab.id in ids:
            raise LabError(wrong(f"labs[{i}].lab", "term.twice", name=lab.id))
        if last and time.due_at and time.due_at < last:
            raise LabError(wrong(f"labs[{i}].due", "term.order"))
        ids, last = [*ids, lab.id], time.due_at or last
        tables = tuple(folder / name for name in given.roster)
        yield TermLab(replace(lab, time=time), file, given.weight, tables)
    if course.drop_lowest >= len(ids):
        fewer = say("term.fewer", count=len(ids))
        raise LabError(at("drop_lowest", wanted(fewer, str(course.drop_lowest))))
