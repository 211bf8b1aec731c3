"""Mistakes in a lab file that no single field shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from grader.labs import groups, rubric, scoring_rules, time_rules
from grader.labs.complaints import at, either, wanted
from grader.language import known_languages
from grader.model import Message, phrase
from grader.problems.problem import Dim


def contradictions(file: Any, size_key: str, dims: Sequence[Dim]) -> Iterator[Message]:
    """Mistakes that no single field shows; each as ``path: what is wrong; remedy``."""
    for kind in ("correctness", "performance", "cpu"):
        yield from _wrong_sizes(kind, file, size_key)
    seen: dict[str, int] = {}
    for i, entry in enumerate(file.performance):
        name = entry.id or f"performance-{i}"
        if re.fullmatch(r"(correctness|cpu)-\d+|hidden-.*", name):
            another = phrase("{name} is the id of another case; take another", name=repr(name))
            yield at(f"performance[{i}].id", another)
        if name in seen:
            first = f"performance[{seen[name]}]"
            taken = phrase("{name} is taken by {other}", name=repr(name), other=first)
            yield at(f"performance[{i}].id", taken)
        seen[name] = i
    sizes = [getattr(entry, size_key) for entry in file.performance]
    yield from scoring_rules.contradictions(file.scoring, sizes, hidden=file.groups is not None)
    if file.groups is not None:
        yield from groups.contradictions(file.groups, dims, file.multiple_of)
    if file.time is not None:
        yield from time_rules.contradictions(file.time)
    if file.rubric is not None:
        yield from rubric.contradictions(file.rubric, "rubric.")
    if file.language is not None and file.language not in known_languages():
        yield at("language", wanted(either(known_languages()), repr(file.language)))
    if len(set(file.architectures)) < len(file.architectures):
        values = str(list(file.architectures))
        yield at("architectures", phrase("a value appears twice in {values}", values=values))


def _wrong_sizes(kind: str, file: Any, size_key: str) -> Iterator[Message]:
    entries: tuple[Any, ...] = getattr(file, kind)
    suffix = f".{size_key}" if kind == "performance" else ""
    seen: dict[Any, int] = {}
    for i, entry in enumerate(entries):
        size = getattr(entry, size_key) if kind == "performance" else entry
        where = f"{kind}[{i}]{suffix}"
        shown = str(list(size) if isinstance(size, tuple) else size)
        if size in seen:
            first = f"{kind}[{seen[size]}]"
            yield at(
                where, phrase("{size} is already {other}; remove one", size=shown, other=first)
            )
        extents = size if isinstance(size, tuple) else (size,)
        if any(extent % file.multiple_of for extent in extents):
            multiples = phrase("multiples of multiple_of={step}", step=file.multiple_of)
            yield at(where, wanted(multiples, shown))
        seen[size] = i
