"""Turns msgspec's complaint about a parsed file into one readable line.

``explain`` gives the field's path (``performance[1].mnk``), the expected value and the value
found. The caller supplies the words: ``sections`` maps the path of each mapping to its record,
``expected`` the path of a field to what belongs in it. List indices are left out of those paths
(``performance[].mnk``).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any, get_args, get_type_hints

import msgspec

from grader.model import Record

_LOCATION = re.compile(r" - at `(?:key in )?\$\.?(?P<path>[^`]*)`$")
_MISSING = re.compile(r"missing required field `(?P<name>[^`]+)`")
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]+)`")


def explain(
    error: msgspec.ValidationError,
    document: Mapping[str, Any],
    sections: Mapping[str, type[Record]],
    expected: Mapping[str, str],
) -> str:
    """``path: what is wrong there``, with a remedy where one can be guessed."""
    complaint = str(error)
    location = _LOCATION.search(complaint)
    path = location["path"] if location else ""
    if unknown := _UNKNOWN.search(complaint):
        known = _fields(sections.get(_shape(path)))
        guess = difflib.get_close_matches(unknown["name"], known, 1)
        remedy = f"did you mean {guess[0]!r}?" if guess else f"known here: {', '.join(known)}"
        return f"{_join(path, unknown['name'])}: unknown key; {remedy}"
    if missing := _MISSING.search(complaint):
        path = _join(path, missing["name"])
        return f"{path}: missing; expected {_words(path, complaint, sections, expected)}"
    if _shape(path) not in expected:
        # One number of a size is wrong: show the whole size.
        outer = re.sub(r"\[\d+\]$", "", path)
        path = outer if _shape(outer) in expected else path
    words = _words(path, complaint, sections, expected)
    return f"{path or 'the file'}: expected {words}, got {show(_at(document, path))}"


def show(value: object) -> str:
    """A found value, short enough for one line."""
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _words(
    path: str,
    complaint: str,
    sections: Mapping[str, type[Record]],
    expected: Mapping[str, str],
) -> str:
    shape = _shape(path)
    if shape in expected:
        return expected[shape]
    outer, _, name = shape.rpartition(".")
    if outer in sections and (choices := get_args(get_type_hints(sections[outer]).get(name))):
        return " or ".join(map(repr, choices))
    if shape in sections:
        return f"a mapping with {', '.join(_fields(sections[shape]))}"
    return complaint.split(" - at ")[0]


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
