"""Who is in the course: a CSV file with one row per student.

The column ``student`` (or ``SIS Login ID`` in a gradebook exported from Canvas) holds the name of
the submission's folder. Optional: ``name``, ``group``, ``submitted`` and ``due`` (ISO
8601 times; without a zone they are UTC). The columns of a Canvas gradebook are kept for the export.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from grader.base import UsageError, moment, one_line
from grader.results import ResultEntry, load_key
from ptxsim.plan import Record
from ptxsim.text import Message, phrase

CANVAS_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
GRADEBOOK_NEEDED = phrase("give the gradebook exported from Canvas (Grades, Export) with --roster")
NO_COMMAS = phrase("{place}: no commas between the columns; save it with commas")
TWICE = phrase("{place}: {column} {name} appears twice; keep one row")
_NUMBERED = re.compile(r"(.*) \(\d+\)")  # Canvas puts its own number behind a title
_KEYS = ("student", "SIS Login ID")
_NAMES = ("name", "Student")


class Person(Record):
    """One student of the roster."""

    student: str  # name of the submission's folder
    name: str = ""
    submitted: datetime | None = None  # goes before the time in a result
    due: datetime | None = None  # goes before the lab's
    canvas: Mapping[str, str] = {}  # the columns of CANVAS_COLUMNS that the roster has
    group: str = ""  # whose submission counts for this student too; "" works alone
    members: tuple[str, ...] = ()  # of a group that stands for its students
    late_days: int = 0  # of a term's, still unused


Roster = Mapping[str, Person]


def read_roster(*paths: Path) -> Roster:
    """The students of one table, or of several that complete one another, by folder name and in the
    files' order. Raises UsageError naming file and line, or what two tables tell differently."""
    roster: dict[str, Person] = {}
    for path in paths:
        try:
            found = _read(path, open_csv(path))
        except csv.Error as error:
            raise not_csv(str(path), error) from None
        for student, person in found.items():
            known = roster.get(student)
            roster[student] = _completed(path, known, person) if known else person
    return roster


def _completed(path: Path, known: Person, other: Person) -> Person:
    """Join what two tables tell of one student, by the first one's name. path: of the second."""
    told = {}
    for field in ("submitted", "due", "group"):
        one, new = getattr(known, field), getattr(other, field)
        if one and new and one != new:
            another = phrase(
                "{path}: {field} of {student} is another than in the table before; keep one",
                path=str(path),
                field=field,
            )
            raise UsageError(another.given(student=one_line(known.student)))
        told[field] = one or new
    name, canvas = known.name or other.name, {**other.canvas, **known.canvas}
    return msgspec.structs.replace(known, name=name, canvas=canvas, **told)


def assignment_column(paths: Sequence[Path], title: str) -> str:
    """The column of a gradebook from Canvas that ``title`` names, with its number or without: of
    any other title Canvas makes a new assignment. paths: of tables, one of which is the gradebook.
    Raises UsageError."""
    tables = [(path, open_csv(path).fieldnames or ()) for path in paths]
    gradebook = next((table for table in tables if "ID" in table[1]), None)
    if gradebook is None:
        none = phrase("{place}: no Canvas IDs; {needed}", needed=GRADEBOOK_NEEDED)
        raise UsageError(none.given(place=f"{paths[0]}:1"))
    path, columns = gradebook
    numbered = [each for each in columns if _NUMBERED.fullmatch(each)]
    found = [each for each in columns if each == title and each not in CANVAS_COLUMNS] or [
        each for each in numbered if _NUMBERED.sub(r"\1", each) == title
    ]
    if len(found) == 1:
        return found[0]
    if not numbered and _NUMBERED.fullmatch(title):  # the gradebook is older than the assignment
        return title
    known = ", ".join(map(repr, found or numbered))
    words = phrase("{place}: {title} may be any of {known}; name one with its number")
    if not found:
        words = phrase(
            "{place}: no column {title}, but {known}; a new assignment is made in Canvas, and its "
            "gradebook exported again"
        )
    others = known or phrase("no assignment")
    raise UsageError(words.given(place=f"{path}:1", title=repr(title), known=others))


def _read(path: Path, reader: csv.DictReader[str]) -> dict[str, Person]:
    columns = reader.fieldnames or ()
    key = next((name for name in _KEYS if name in columns), None)
    if key is None:
        if len(columns) == 1 and any(key in re.split("[;\t]", columns[0]) for key in _KEYS):
            raise UsageError(NO_COMMAS.given(place=f"{path}:1"))
        none = phrase("{place}: no column {one} or {other} with the submissions' folder names")
        one, other = map(repr, _KEYS)
        raise UsageError(none.given(place=f"{path}:1", one=one, other=other))
    name = next((column for column in _NAMES if column in columns), None)
    roster: dict[str, Person] = {}
    for row in reader:
        student = (row[key] or "").strip()
        if not student:  # Canvas puts the points possible into a row without a student
            continue
        where = f"{path}:{reader.line_num}"
        if student in roster:
            raise UsageError(TWICE.given(place=where, column=key, name=repr(student)))
        roster[student] = Person(
            student=student,
            name=(row[name] or "").strip() if name else "",
            submitted=_time(where, "submitted", row),
            due=_time(where, "due", row),
            canvas={column: row[column] or "" for column in CANVAS_COLUMNS if column in columns},
            group=(row.get("group") or "").strip(),
        )
    return roster


def _time(where: str, column: str, row: Mapping[str, str | None]) -> datetime | None:
    text = row.get(column)
    if not text or not text.strip():
        return None
    try:
        return moment(text)
    except ValueError:
        no = phrase("{place}: {column}: expected a time such as {example}, got {value}")
        no = no.given(place=where, column=column, example="2026-01-31T23:59:00+01:00")
        raise UsageError(no.given(value=repr(text))) from None


# --- spreadsheet -------------------------------------------------------------------------------

# Where a field begins: at the start, and after what a spreadsheet may take for a separator.
_FORMULA = re.compile(r"(\A|[;|\t\r\n])(?=[\s\x22]*[=+\-@＝＋－＠])|\A(?=[\t\r\n])")


def open_csv(path: Path) -> csv.DictReader[str]:
    """Rows by column, strictly quoted, after a byte order mark if there is one. Reading them may
    raise csv.Error. Raises UsageError naming the file and the line."""
    try:
        content = path.read_bytes()
    except OSError as error:
        words = phrase("{place}: cannot be read: {why}", place=str(path))
        raise UsageError(words.given(why=str(error.strerror))) from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        odd = phrase("{place}: not UTF-8 text; save the file as CSV UTF-8")
        raise UsageError(odd.given(place=f"{path}:{line}")) from None
    return csv.DictReader(io.StringIO(text, newline=""), strict=True)


def not_csv(place: str, error: csv.Error) -> UsageError:
    return UsageError.saying("{place}: not a CSV file: {error}", place=place, error=str(error))


def harmless(cell: object) -> object:
    """A spreadsheet runs what begins like a formula; an apostrophe makes it text. Some split at
    semicolons, tabs or bars, and then the quotes round a cell with commas protect nothing."""
    return _FORMULA.sub(r"\g<0>'", cell) if isinstance(cell, str) else cell


def csv_text(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A table for a spreadsheet, without formulas."""
    return raw_csv([columns, *(map(harmless, row) for row in rows)])


def raw_csv(rows: Iterable[Iterable[object]]) -> str:
    """Rows with their cells as they are, for a program that compares them."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\r\n").writerows(rows)
    return buffer.getvalue()


# --- parties -----------------------------------------------------------------------------------


class Parties:
    """The students of the roster, each alone or in a group, which boards take for a student."""

    def __init__(self, people: Roster) -> None:
        members: dict[str, list[Person]] = {}
        for person in people.values():
            members.setdefault(person.group or person.student, []).append(person)
            if person.group in people and people[person.group].group != person.group:
                clash = phrase(
                    "roster: group {group} of {student} is also the name of a student who is not "
                    "in it; rename the group",
                    group=repr(person.group),
                    student=repr(person.student),
                )
                raise UsageError(clash)
        self.people = people
        self._members = members

    @property
    def roster(self) -> Roster:
        return {party: _one(party, people) for party, people in self._members.items()}

    def members(self, party: str) -> Sequence[Person]:
        """Return the people on the roster for whom this party's submission counts."""
        return self._members.get(party, ())

    def merged(self, entries: Iterable[ResultEntry]) -> tuple[list[ResultEntry], list[Message]]:
        """Entries with the party in the student's place, and a line for each name that would put a
        student into a second party: it stays a name like any other, with a row of its own."""
        found = list(entries)
        parties = {name: self.party(name) for name in {e.submission.student for e in found}}
        complaints = self._pair_up(set(parties.values()))
        replace = msgspec.structs.replace
        people = (replace(e.submission, student=parties[e.submission.student]) for e in found)
        merged = [replace(e, submission=who) for e, who in zip(found, people, strict=True)]
        return merged, complaints

    def party(self, name: str) -> str:
        """Return the name under which a student's work counts."""
        if name in self.people:
            return self.people[name].group or name
        named = name.split("+")
        groups = {self.people[each].group for each in named if each in self.people}
        if len(named) > 1 and len(groups) == 1 and all(each in self.people for each in named):
            return groups.pop() or name
        return name

    def _pair_up(self, used: Collection[str]) -> list[Message]:
        """Make groups of those that only a submission's name puts together; a line for each name
        that cannot. used: all parties that handed in."""
        named = {
            party: people
            for party in sorted(used)
            if party not in self._members and (people := self._all_known(party))
        }
        in_names = Counter(person.student for people in named.values() for person in people)
        complaints = []
        for party, people in named.items():
            taken = [
                person.student
                for person in people
                if person.student in used or person.group or in_names[person.student] > 1
            ]
            if taken:
                words = phrase(
                    "{group} as a group: {who} handed in alone or with others, too; say which "
                    "counts with a column 'group' in the roster",
                    group=one_line(party),
                    who=", ".join(map(one_line, taken)),
                )
                complaints.append(words)
                continue
            for person in people:
                del self._members[person.student]
            self._members[party] = people
        return complaints

    def _all_known(self, party: str) -> list[Person]:
        """The people whom a name such as ``ada+ben`` puts together; [] if one is not known."""
        people = [self.people.get(name) for name in dict.fromkeys(party.split("+"))]
        return [person for person in people if person] if all(people) else []


def _one(party: str, people: Sequence[Person]) -> Person:
    """The group as a person. An extension for one member is one for all."""
    if len(people) == 1 and people[0].student == party:
        return people[0]
    return Person(
        student=party,
        name=", ".join(person.name or person.student for person in people),
        submitted=max((p.submitted for p in people if p.submitted), default=None),
        due=max((p.due for p in people if p.due), default=None),
        members=tuple(person.student for person in people),
    )


# --- pseudonyms --------------------------------------------------------------------------------

KEY_NAME = ".pseudonym-key"
_ANIMALS = (
    *("badger", "beaver", "bison", "condor", "crane", "dolphin", "egret", "falcon"),
    *("ferret", "finch", "gecko", "heron", "ibex", "jackal", "kestrel", "lemur"),
    *("lynx", "magpie", "marten", "newt", "ocelot", "osprey", "otter", "panda"),
    *("petrel", "puffin", "quokka", "raven", "salmon", "tapir", "walrus", "wombat"),
)


def load_pseudonym_key(out: Path) -> bytes:
    """The key beside the results. Raises StoreError."""
    return load_key(out / KEY_NAME, phrase("all pseudonyms change"))


def pseudonym(key: bytes, student: str) -> str:
    """``otter-3fa9c1``."""
    digest = hmac.new(key, student.encode(errors="surrogateescape"), hashlib.sha256).digest()
    return f"{_ANIMALS[digest[0] % len(_ANIMALS)]}-{digest[1:4].hex()}"
