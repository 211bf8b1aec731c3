"""Answers that are kept beside the builds, so that both together stay within the cache's limit."""

from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from grader.base import cache_folder, decode
from grader.build import cache

_T = TypeVar("_T")


def recall(name: str, kind: type[_T]) -> _T | None:
    """The answer that is kept under ``name``, "second-4f…"; None where there is none."""
    found = cache.find(_folder(name), ())
    with suppress(msgspec.DecodeError):
        return None if found is None else decode(found, kind)
    return None


def keep(name: str, answer: object) -> None:
    with suppress(OSError):
        cache.keep(_folder(name), msgspec.json.encode(answer), {})


def _folder(name: str) -> Path:
    return cache_folder() / "builds" / name
