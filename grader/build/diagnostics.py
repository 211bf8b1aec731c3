"""Reads what compilers print, as text that a submission may have written.

A submission can make a compiler print anything: by #error, #pragma message, #line, a string with
line breaks. So nothing here decides who is at fault; blame.py checks in other ways.
Every function takes time proportional to the length of the text.
"""

import re
from collections.abc import Container
from itertools import takewhile

from grader.build.entry import ENTRY
from ptxsim.plan import Record
from ptxsim.text import Message, counted, verbatim

_MAX_WIDTH = 1000  # characters of a line
_MAX_LOG = 256 << 10  # characters
# Names end at a colon, a parenthesis or a space, so each of these looks at a character once.
_PLACE = re.compile(r"(?P<file>[^\s:(]+)(?:\((?P<nvcc>\d+)\)|:(?P<gcc>\d+)(?::\d+)?): ")
_USE = re.compile(r" at line (?P<line>\d{1,9}) of (?P<file>\S+)$")
_MISSING = re.compile(r"fatal error: (?P<header>[^\s:]+): No such file")
_ERROR = re.compile(r"\b[Ee]rror\b")  # the assembler writes "Error:"
_COLOURS = (
    (re.compile(r"\b(?:fatal )?error\b(?=[ :#])"), "\x1b[1;31m"),
    (re.compile(r"\bwarning\b(?=[ :#])"), "\x1b[1;35m"),
    (re.compile(r"\bnote\b(?=:)"), "\x1b[1;36m"),
    (re.compile(r"^[^\s:(]+(?:\(\d+\)|:\d+(?::\d+)?)(?=: )"), "\x1b[1m"),
)
_MARK = "\x1b[32m"
_MARKS = frozenset(" \t|^~0123456789")
_PLAIN = "\x1b[0m"


class Complaint(Record):
    text: str  # the whole line
    more: int  # further lines with errors, if it is the first
    file: str | None  # as the compiler names it
    line: int | None
    missing: str | None  # a header that is not there

    @property
    def message(self) -> Message:
        if not self.more:
            return verbatim(self.text)
        words = counted(
            "{error} (and {count} more error)", "{error} (and {count} more errors)", self.more
        )
        return words.given(error=self.text)


def readable(output: str) -> str:
    """The compiler's messages for the student, with the student's file names and without our part.
    Long lines are cut, and so is everything after a quarter of a megabyte."""
    kept: list[str] = []
    room = _MAX_LOG
    for line in output.splitlines():
        cut = line if len(line) <= _MAX_WIDTH else f"{line[:_MAX_WIDTH]} …"
        if ENTRY in cut and not _is_error(cut):  # "In file included from …", "2 errors in …"
            continue
        room -= len(cut) + 1
        if room < 0:
            kept.append("… (the rest is left out)")
            break
        kept.append(re.sub(r"(^|[\s\"(])\./", r"\1", cut))
    return "\n".join(kept).strip()


def first_error(log: str) -> Complaint | None:
    """The first error in a log from ``readable``; None when no line reports an error."""
    errors = [line for line in log.split("\n") if _is_error(line)]
    return _complaint(errors[0], len(errors) - 1) if errors else None


def used_at(log: str, names: Container[str]) -> str | None:
    """The line of these files that led to the first error, if that is within a template."""
    lines = iter(log.split("\n"))
    if not any(map(_is_error, lines)):
        return None
    for line in takewhile(lambda each: not _is_error(each), lines):
        found = _USE.search(line)
        if found and found["file"] in names:
            return f"{found['file']}:{found['line']}"
    return None


def complaints(log: str) -> tuple[Complaint, ...]:
    """Every error in a log from ``readable``."""
    return tuple(_complaint(line, 0) for line in log.split("\n") if _is_error(line))


def _complaint(text: str, more: int) -> Complaint:
    place = _PLACE.match(text)
    missing = _MISSING.match(text, place.end()) if place else None
    return Complaint(
        text=text,
        more=more,
        file=place["file"] if place else None,
        line=int((place["nvcc"] or place["gcc"])[:9]) if place else None,
        missing=missing["header"] if missing else None,
    )


def coloured(log: str) -> str:
    """The log in the colours that compilers use; nvcc has none of its own."""
    lines = log.splitlines()
    for place, line in enumerate(lines):
        if ("^" in line or "~" in line) and _MARKS.issuperset(line):
            lines[place] = f"{_MARK}{line}{_PLAIN}"
            continue
        for pattern, colour in _COLOURS:
            lines[place] = pattern.sub(rf"{colour}\g<0>{_PLAIN}", lines[place], count=1)
    return "\n".join(lines)


def _is_error(line: str) -> bool:
    if "error:" in line:
        return True
    if line.startswith("ptxas ") and ("error   :" in line or "fatal   :" in line):
        return True
    place = _PLACE.match(line)
    return place is not None and _ERROR.search(line, place.end()) is not None
