"""Mistakes in a lab file that no single field shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from grader.labs import groups, scoring_rules, time_rules
from grader.language import known_languages
from grader.problems.problem import Dim


def contradictions(file: Any, size_key: str, dims: Sequence[Dim]) -> Iterator[str]:
    """Mistakes that no single field shows; each as ``path: what is wrong; remedy``."""
    for kind in ("correctness", "performance", "cpu"):
        yield from _wrong_sizes(kind, file, size_key)
    seen: dict[str, int] = {}
    for i, entry in enumerate(file.performance):
        name = entry.id or f"performance-{i}"
        if re.fullmatch(r"(correctness|cpu)-\d+|hidden-.*", name):
            yield f"performance[{i}].id: {name!r} is the id of another case; take another"
        if name in seen:
            yield f"performance[{i}].id: {name!r} is taken by performance[{seen[name]}]"
        seen[name] = i
    sizes = [getattr(entry, size_key) for entry in file.performance]
    yield from scoring_rules.contradictions(file.scoring, sizes, hidden=file.groups is not None)
    if file.groups is not None:
        yield from groups.contradictions(file.groups, dims, file.multiple_of)
    if file.time is not None:
        yield from time_rules.contradictions(file.time)
    if file.language is not None and file.language not in known_languages():
        yield f"language: expected {' or '.join(known_languages())}, got {file.language!r}"
    if len(set(file.architectures)) < len(file.architectures):
        yield f"architectures: a value appears twice in {list(file.architectures)}"


def _wrong_sizes(kind: str, file: Any, size_key: str) -> Iterator[str]:
    entries: tuple[Any, ...] = getattr(file, kind)
    suffix = f".{size_key}" if kind == "performance" else ""
    seen: dict[Any, int] = {}
    for i, entry in enumerate(entries):
        size = getattr(entry, size_key) if kind == "performance" else entry
        where = f"{kind}[{i}]{suffix}"
        shown = list(size) if isinstance(size, tuple) else size
        if size in seen:
            yield f"{where}: {shown} is already {kind}[{seen[size]}]; remove one"
        extents = size if isinstance(size, tuple) else (size,)
        if any(extent % file.multiple_of for extent in extents):
            yield f"{where}: expected multiples of multiple_of={file.multiple_of}, got {shown}"
        seen[size] = i
