"""A ladder that was measured on somebody's GPU, in one file to hand in: the document and the
results that it was made of, with the times of every repetition.

``plausible.py`` says whether to believe it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from grader.ladder.document import Ladder
from grader.model import Record, Result
from grader.results import store

SCHEMA = "sgemm-grader/handed-in-ladder"
SCHEMA_VERSION = 1


class HandedIn(Record):
    """What ``grade ladder --send`` writes."""

    schema: str
    version: int
    ladder: Ladder
    results: tuple[Result, ...]  # with repetitions; by rung


def hand_in(ladder: Ladder, results: Mapping[str, Result]) -> HandedIn:
    named = (results.get(step.rung.name) for step in ladder.steps)
    return HandedIn(
        schema=SCHEMA,
        version=SCHEMA_VERSION,
        ladder=ladder,
        results=tuple(result for result in named if result is not None),
    )


def load_handed_in(path: Path) -> HandedIn:
    """Raises StoreError that names the file and what is wrong with it."""
    return store.load_document(path, HandedIn, SCHEMA, SCHEMA_VERSION, lambda document: document)
