"""Findings for people: a sentence, its place, and the lines of the source around it."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from ptxsim.findings.finding import Finding, Severity
from ptxsim.findings.sentences import sentence
from ptxsim.plan.records import Dim3, Place
from ptxsim.record import Record
from ptxsim.text import Message, counted, listed, phrase, verbatim

CONTEXT = 2  # source lines shown above and below the line of a finding
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


_Of = TypeVar("_Of", bound=str, covariant=True)
_Kind = TypeVar("_Kind", bound=str)


class Remark(Record, Generic[_Of]):
    """A finding in words, as documents hold it. Its kind is text, or of a type of the user's."""

    kind: _Of
    severity: Severity
    message: Message  # one sentence
    file: str | None = None
    line: int | None = None
    block: Dim3 | None = None
    thread: Dim3 | None = None
    count: int = 1  # how many times it happened

    @staticmethod
    def at(
        place: Place | None, kind: _Kind, severity: Severity, message: Message, **more: Any
    ) -> "Remark[_Kind]":
        """The remark with the place, if it is known."""
        file, line = (place.file, place.line) if place else (None, None)
        return Remark(kind=kind, severity=severity, message=message, file=file, line=line, **more)

    @property
    def subject(self) -> tuple[_Of, str | None, int | None]:
        """Kind and line, in which two remarks agree that say the same."""
        return self.kind, self.file, self.line


_Some = TypeVar("_Some", bound=Remark[str])


def remark(seen: Finding, kinds: Callable[[str], _Kind], gpu: str = "") -> Remark[_Kind]:
    """gpu: that more blocks wait for each other than it holds, where one does."""
    return Remark.at(
        seen.place,
        kinds(seen.kind.value),
        seen.severity,
        sentence(seen, gpu),
        block=seen.block,
        thread=seen.thread,
        count=seen.count,
    )


def clean(text: str) -> str:
    """The text without terminal control characters: whoever wrote the kernel writes them."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def source_line(file: str, line: int | None) -> str:
    return f"{file}:{line}" if line is not None else file


def place(found: Remark[str]) -> Message:
    """``sgemm.cu:17, block (2,0,0) thread (0,0,0), 12 times``, as far as known."""
    parts = []
    if found.file is not None:
        parts.append(verbatim(source_line(found.file, found.line)))
    block, thread = (
        each and f"({','.join(map(str, each))})" for each in (found.block, found.thread)
    )
    last = f"thread {thread}" if thread else f"block {block}" if block else ""
    if last and last not in str(found.message):
        if block and thread:
            parts.append(phrase("block {block} thread {thread}", block=block, thread=thread))
        elif block:
            parts.append(phrase("block {block}", block=block))
        elif thread:
            parts.append(phrase("thread {thread}", thread=thread))
    where = listed(parts)
    if found.count == 1:
        return where
    times = counted("{count} time", "{count} times", found.count)
    return phrase("{place}, {times}", place=where, times=times) if parts else times


def places(group: Sequence[Remark[str]]) -> Message:
    """``place`` of the first, and the lines of the others, which are about the same mistake."""
    first = place(group[0])
    if len(group) == 1:
        return first
    return counted(
        "{place}; the same at line {lines}",
        "{place}; the same at lines {lines}",
        len(group) - 1,
        place=first,
        lines=", ".join(str(found.line) for found in group[1:]),
    )


def neighbours(findings: Sequence[_Some]) -> list[list[_Some]]:
    """Groups of findings of one kind on nearby lines; no group is empty."""
    groups: list[list[_Some]] = []
    for found in findings:
        last = groups[-1][-1] if groups else None
        if (
            last is not None
            and (last.kind, last.severity, last.file) == (found.kind, found.severity, found.file)
            and last.line is not None
            and found.line is not None
            and 0 < found.line - last.line <= CONTEXT
        ):
            groups[-1].append(found)
        else:
            groups.append([found])
    return groups


class ExcerptLine(NamedTuple):
    margin: str  # with a mark where a finding points here, and the number
    text: str
    marked: bool


def excerpt(source: str | None, group: Collection[Remark[str]]) -> list[ExcerptLine]:
    """The lines that the group names, with a few around them; [] where they are unknown."""
    marked = {found.line for found in group if found.line is not None}
    lines = source.splitlines() if source is not None else []
    if not marked or max(marked) > len(lines) or min(marked) < 1:
        return []
    last = min(len(lines), max(marked) + CONTEXT)
    width = len(str(last))
    return [
        ExcerptLine(
            f"{'>' if number in marked else ' '} {number:>{width}} │ ",
            clean(lines[number - 1].expandtabs(4)),
            number in marked,
        )
        for number in range(max(1, min(marked) - CONTEXT), last + 1)
    ]


def in_words(remarks: Sequence[Remark[str]], source: Callable[[str], str | None]) -> Iterator[str]:
    """A paragraph of English for every group of neighbours. source: the text of a file."""
    for group in neighbours(remarks):
        first = group[0]
        lines = [f"{first.severity.value}: {first.kind}: {clean(str(first.message))}"]
        if where := str(places(group)):
            lines.append(f"  {clean(where)}")
        text = source(first.file) if first.file is not None else None
        lines += [f"  {each.margin}{each.text}".rstrip() for each in excerpt(text, group)]
        yield "\n".join(lines)
