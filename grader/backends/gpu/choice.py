"""Finds the fastest of a problem's baselines, once per GPU, driver and size."""

from __future__ import annotations

import contextlib
import hashlib
import os
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from grader.model import GpuInfo, Record, Size
from grader.model.decoding import decode
from grader.problems.operands import Launch

_REPEATS = 4


class Choice(Record):
    """One file of the cache; ``key`` is for people, its hash is the file's name."""

    key: str
    fastest: str  # the baseline's name


class Choices:
    """Stores choices in ``folder``; measures again what it cannot read or write."""

    def __init__(self, folder: Path, gpu: GpuInfo, library: str) -> None:
        self._folder = folder
        self._where = f"{gpu.name}, {gpu.uuid}, driver {gpu.driver}, {library}"

    def fastest(
        self,
        problem: str,
        size: Size,
        baselines: Mapping[str, Launch],
        milliseconds: Callable[[Launch], float],
    ) -> str:
        """Name of the fastest of the ``baselines``. problem: with its options."""
        key = f"{problem}, {size}, {self._where}"
        path = self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            known = decode(path.read_bytes(), Choice)
            if known.key == key and known.fastest in baselines:
                return known.fastest
        times = {
            name: statistics.median(milliseconds(launch) for _ in range(_REPEATS))
            for name, launch in baselines.items()
        }
        fastest = min(times, key=lambda name: times[name])
        self._keep(path, Choice(key=key, fastest=fastest))
        return fastest

    def _keep(self, path: Path, choice: Choice) -> None:
        scratch = path.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            scratch.write_bytes(msgspec.json.encode(choice))
            scratch.replace(path)
