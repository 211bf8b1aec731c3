"""Where host code stands: places in its source, and what it calls its memory."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from itertools import islice
from pathlib import Path

from ptxsim.execution.sources import Sources
from ptxsim.native import answer_of
from ptxsim.plan.records import Place

_ANSWER = re.compile(r"(?P<file>.+):(?P<line>[1-9][0-9]*)")
_LIBRARY = re.compile(r"/(?:thrust|cub)/")
_VARIABLE = re.compile(
    r"cu(?:da|Mem)(?:Malloc|Alloc|HostAlloc)\w*\s*\(\s*(?:\([^()]*\)\s*)?&\s*([\w.\[\]>-]+)"
)
_CALL = re.compile(r"\bcu\w+(?=\s*(?:<[^;()]*>\s*)?\()")


class HostCode:
    """The host side of ``program``, a file with debug information if it was built for ptxsim."""

    def __init__(self, program: Path, folders: Sequence[Path] = ()) -> None:
        self._program = program
        self._known: dict[int, Place | None] = {}
        self.sources = Sources((*folders, program.parent))
        self._of_library: set[int] = set()  # those of CUDA's headers: Thrust, CUB
        self._namers: dict[tuple[int, ...], Callable[[], str]] = {}  # in the allocations' order

    @cached_property
    def _addr2line(self) -> str | None:
        return shutil.which("addr2line")

    def place(self, frames: Sequence[int]) -> Place | None:
        """The innermost place in the user's own sources."""
        new = [each for each in frames if each not in self._known]
        if new and self._addr2line:
            # A return address may already belong to the next line.
            asked = [f"{each - 1:#x}" for each in new]
            done = answer_of([self._addr2line, "-a", "-i", "-e", self._program, *asked])
            # Of each: the address, and the place with those it is inlined into.
            chains = done.stdout.split("0x")[1:]
            for frame, chain in zip(new, chains, strict=False):
                lines = chain.splitlines()[1:]
                self._known[frame] = next(filter(None, map(self._own, lines)), None)
                if lines and _LIBRARY.search(lines[0]):
                    self._of_library.add(frame)
        places = (self._known.get(each) for each in frames)
        return next((each for each in places if each), None)

    def is_library(self, frames: Sequence[int]) -> bool:
        """Whether Thrust or CUB makes the call."""
        self.place(frames)
        return bool(frames) and frames[0] in self._of_library

    def namer(self, frames: Sequence[int]) -> Callable[[], str]:
        """Return a function that says how people call memory that was allocated there."""
        key = tuple(frames)
        if key not in self._namers:
            self._namers[key] = cache(partial(self._name, key, len(self._namers)))
        return self._namers[key]

    def freed(self, name: Callable[[], str], frames: Sequence[int]) -> Callable[[], str]:
        """The same for memory that was freed there."""
        return partial(self._freed, name, tuple(frames))

    def _freed(self, name: Callable[[], str], frames: tuple[int, ...]) -> str:
        place, (known, brackets, _) = self.place(frames), name().partition(")")
        where = f"freed at {place.file}:{place.line}" if place else "freed"
        return f"{known}, {where})" if brackets else f"{known} ({where})"

    def _name(self, frames: tuple[int, ...], earlier: int) -> str:
        place = self.place(frames)
        if place is None:
            return "an allocation"
        where = f"{place.file}:{place.line}"
        beside = sum(self.place(each) == place for each in islice(self._namers, earlier))
        found = _VARIABLE.findall(self._line(place))
        return f"{found[beside % len(found)]} ({where})" if found else f"the allocation of {where}"

    def call(self, place: Place | None) -> str:
        """The name of CUDA's function that is called there."""
        found = _CALL.search(self._line(place)) if place else None
        return found[0] if found else "host code"

    def _line(self, place: Place) -> str:
        text = self.sources.text(place.file) or ""
        return "".join(text.splitlines()[place.line - 1 : place.line])

    def _own(self, text: str) -> Place | None:
        found = _ANSWER.match(text)
        if not found or found["file"].startswith("?"):
            return None
        here = self.sources.here
        path = Path(os.path.normpath(here / found["file"]))
        if "/include/" in str(path) or not path.is_file():
            return None
        shown = path.relative_to(here) if path.is_relative_to(here) else path
        return Place(file=str(shown), line=int(found["line"]))
