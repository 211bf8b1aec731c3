"""Turns msgspec's complaint about a parsed file into one readable line.

``explain`` gives the field's path (``performance[1].mnk``), the expected value and the value
found. The caller supplies the words: ``sections`` maps the path of each mapping to its record,
``expected`` the path of a field to what belongs in it. List indices are left out of those paths
(``performance[].mnk``).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, get_args, get_type_hints

import msgspec

from grader.model import Message, Record, phrase, verbatim

IDENTIFIER = phrase("letters, digits, '-' and '_', at most 64")
_LOCATION = re.compile(r" - at `(?:key in )?\$\.?(?P<path>[^`]*)`$")
_MISSING = re.compile(r"missing required field `(?P<name>[^`]+)`")
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]+)`")


def explain(
    error: msgspec.ValidationError,
    document: Mapping[str, Any],
    sections: Mapping[str, type[Record]],
    expected: Mapping[str, Message],
) -> Message:
    """``path: what is wrong there``, with a remedy where one can be guessed."""
    complaint = str(error)
    location = _LOCATION.search(complaint)
    path = location["path"] if location else ""
    if unknown := _UNKNOWN.search(complaint):
        known = _fields(sections.get(_shape(path)))
        guess = difflib.get_close_matches(unknown["name"], known, 1)
        remedy = (
            phrase("did you mean {name}?", name=repr(guess[0]))
            if guess
            else phrase("known here: {names}", names=", ".join(known))
        )
        field = _join(path, unknown["name"])
        return at(field, phrase("unknown key; {remedy}", remedy=remedy))
    if missing := _MISSING.search(complaint):
        path = _join(path, missing["name"])
        words = _words(path, complaint, sections, expected)
        return at(path, phrase("missing; expected {words}", words=words))
    if _shape(path) not in expected:
        # One number of a size is wrong: show the whole size.
        outer = re.sub(r"\[\d+\]$", "", path)
        path = outer if _shape(outer) in expected else path
    words = _words(path, complaint, sections, expected)
    return at(path or phrase("the file"), wanted(words, show(_at(document, path))))


def at(field: str | Message, what: Message) -> Message:
    """What is wrong in a field."""
    return phrase("{field}: {what}", field=field, what=what)


def wanted(words: str | Message, got: str | Message) -> Message:
    return phrase("expected {words}, got {value}", words=words, value=got)


def show(value: object) -> str | Message:
    """A found value, short enough for one line."""
    if value is None:
        return phrase("nothing")
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _words(
    path: str,
    complaint: str,
    sections: Mapping[str, type[Record]],
    expected: Mapping[str, Message],
) -> Message:
    shape = _shape(path)
    if shape in expected:
        return expected[shape]
    outer, _, name = shape.rpartition(".")
    if outer in sections and (choices := get_args(get_type_hints(sections[outer]).get(name))):
        return either(map(repr, choices))
    if shape in sections:
        return phrase("a mapping with {names}", names=", ".join(_fields(sections[shape])))
    return verbatim(complaint.split(" - at ")[0])


def either(choices: Iterable[str]) -> Message:
    """``a or b or c``."""
    first, *others = map(verbatim, choices)
    return reduce(
        lambda one, other: phrase("{one} or {other}", one=one, other=other), others, first
    )


def _shape(path: str) -> str:
    return re.sub(r"\[\d+\]", "[]", path)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _fields(section: type[Record] | None) -> tuple[str, ...]:
    return section.__struct_fields__ if section else ()


def _at(document: Any, path: str) -> Any:
    """The value at ``performance[1].mnk``; None where msgspec names what is not there."""
    value = document
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and index and int(index) < len(value):
            value = value[int(index)]
        else:
            return None
    return value
