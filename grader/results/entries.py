"""The parts of all result documents below a folder that boards, histories and rubrics need."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import secrets
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from grader import base
from grader.labs import SourceFile, read, source_texts
from grader.results import store
from grader.results.case import Timing
from grader.results.profile import PROFILE_SCHEMA, PROFILE_VERSION, ProfileDocument
from grader.results.result import LabRef
from grader.results.score import ByModel, Score, SizeGroup, points_of
from grader.results.store import StoreError
from ptxsim.text import Message, phrase


class _Who(msgspec.Struct, frozen=True):
    student: str
    sha256: str
    submitted: tuple[str, ...] = ()


class _Where(msgspec.Struct, frozen=True):
    device: str
    gpu: base.GpuInfo | None


class _Case(msgspec.Struct, frozen=True):
    size: base.Dims
    amount: int
    verdict: base.Verdict | None
    timing: Timing | None


class ResultEntry(msgspec.Struct, frozen=True):
    """The fields of one document that many documents are read for; the rest is not decoded."""

    created: str
    lab: LabRef
    problem: base.ProblemInfo
    submission: _Who
    environment: _Where
    cases: tuple[_Case, ...]
    verdict: base.Verdict
    score: Score | None
    groups: tuple[SizeGroup, ...] = ()
    by_model: ByModel | None = None

    @property
    def gpu(self) -> str | None:
        """The model that timed it, or that an estimate is about."""
        if self.by_model:
            return f"≈ {self.by_model.gpu}"
        return self.environment.gpu.name if self.environment.gpu else None

    @property
    def passed(self) -> int:
        """Sizes that are right, hidden ones included."""
        if self.groups:
            return sum(group.right for group in self.groups)
        return sum(case.verdict is base.Verdict.AC for case in self.cases)

    @property
    def sizes(self) -> int:
        return sum(group.sizes for group in self.groups) if self.groups else len(self.cases)

    @property
    def points(self) -> float | None:
        """The ranked figure; None of what is right and the model does not grade."""
        if self.by_model and self.by_model.ungraded:
            return None
        sizes = [case.verdict for case in self.cases]
        device = self.environment.device
        return round(points_of(device, self.verdict, sizes, self.groups, self.score), 2)

    @property
    def fastest(self) -> tuple[float, float] | None:
        """Speeds of the submission and of the baseline, as scored, for the largest timed size."""
        timed = [(case.amount, case.timing) for case in self.cases if case.timing]
        if not timed:
            return None
        _, timing = max(timed, key=lambda pair: pair[0])
        return timing.scored_speed, timing.baseline_speed


def read_entry(path: Path) -> ResultEntry:
    """Raises StoreError that names the file and what is wrong with it."""
    entry = store.load_as(path, ResultEntry)
    try:
        for time in (entry.created, *entry.submission.submitted):
            base.moment(time)
    except ValueError as error:
        damaged = phrase("{file}: damaged result document: {why}", file=base.one_line(path))
        raise StoreError(damaged.given(why=str(error))) from None
    return entry


class Stored(NamedTuple):
    """A result document: ``store.load(path)`` reads all of it."""

    path: Path
    entry: ResultEntry


class Index(NamedTuple):
    """All results below a folder, and one line for each file that is not a result."""

    documents: tuple[Stored, ...]  # sorted by path
    complaints: tuple[Message, ...]

    def of(self, student: str, lab: str | None = None) -> tuple[Stored, ...]:
        """Return the results of one student, the oldest grading first. lab: its id."""
        own = (each for each in self.documents if each.entry.submission.student == student)
        found = (each for each in own if lab in (None, each.entry.lab.id))
        return tuple(sorted(found, key=lambda each: each.entry.created))


def read_index(out: Path) -> Index:
    documents: list[Stored] = []
    complaints: list[Message] = []
    # The collector would look at all entries again for every few new ones: most of the time.
    collects = gc.isenabled()
    gc.disable()
    try:
        for path in store.stored(out):
            found = entry_or_complaint(path)
            if isinstance(found, ResultEntry):
                documents.append(Stored(path, found))
            else:
                complaints.append(found)
    finally:
        if collects:
            gc.enable()
    return Index(tuple(documents), tuple(complaints))


def entry_or_complaint(path: Path) -> ResultEntry | Message:
    try:
        return read_entry(path)
    except StoreError as error:
        return error.message


def read_entries(out: Path) -> tuple[list[ResultEntry], list[Message]]:
    """Read all results below ``out``, and one line for each file that is not a result."""
    index = read_index(out)
    return [each.entry for each in index.documents], list(index.complaints)


# --- keys --------------------------------------------------------------------------------------

_BYTES = 32


def load_key(path: Path, when_lost: Message) -> bytes:
    """The key in this file. when_lost: what follows from deleting it. Raises StoreError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(path):
            _make_key(path)
        key = read(path)
    except OSError as error:
        unusable = phrase("{path}: cannot be used as the key: {why}", path=str(path))
        raise StoreError(unusable.given(why=str(error.strerror))) from None
    if len(key) != _BYTES:
        damaged = phrase("{path}: damaged key; delete it, and {when_lost}", path=str(path))
        raise StoreError(damaged.given(when_lost=when_lost))
    return key


def _make_key(path: Path) -> None:
    """If two make it at the same time, the first one's key stays. Linking a whole file is atomic on
    network file systems too."""
    with tempfile.NamedTemporaryFile(prefix=".", suffix=".tmp", dir=path.parent) as file:
        file.write(secrets.token_bytes(_BYTES))
        file.flush()
        os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(file.name, path)


def profile_path(document: Path) -> Path:
    """document: of a result. The profile's own is hidden, for it is no result."""
    return document.with_name(f".{document.name.split('-')[0]}.profile")


def stored_profile(document: Path) -> ProfileDocument | None:
    """The profile of this result's source; None where there is none that can be read."""
    kind, schema = ProfileDocument, PROFILE_SCHEMA
    try:
        return store.load_document(profile_path(document), kind, schema, PROFILE_VERSION)
    except StoreError:
        return None


# --- sources -----------------------------------------------------------------------------------

_FOLDER = ".sources"  # hidden: it holds no results


def keep_sources(beside: Path, contents: Iterable[bytes]) -> None:
    """Keep the files of the result document ``beside``. Raises StoreError."""
    for content in contents:
        path = beside.parent / _FOLDER / hashlib.sha256(content).hexdigest()
        if not path.exists():
            store.write(path, content)


def kept_sources(beside: Path, files: Iterable[SourceFile]) -> dict[str, str] | None:
    """The texts of a stored result's files by name, or None if one was not kept or has changed."""
    contents: dict[str, bytes] = {}
    for file in files:
        try:
            content = read(beside.parent / _FOLDER / file.sha256)
        except (OSError, ValueError):
            return None
        if hashlib.sha256(content).hexdigest() != file.sha256:
            return None
        contents[file.name] = content
    return source_texts(contents)
