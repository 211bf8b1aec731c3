"""The files of which findings may show lines: a program's debug information can name any."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from ptxsim.report import SUFFIXES


class Sources:
    """Sources in the folder that one works in, and in ``folders`` that the command line names."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        self.here = Path.cwd()
        self._folders = (self.here, *folders)
        self._texts: dict[str, str | None] = {}

    @cached_property
    def _roots(self) -> tuple[Path, ...]:
        return tuple(each.resolve() for each in self._folders)

    def text(self, file: str) -> str | None:
        """The text of a file that a finding names; None for one that nobody asked to compile."""
        if file not in self._texts:
            path = (self.here / file).resolve()
            own = path.suffix in SUFFIXES and any(map(path.is_relative_to, self._roots))
            self._texts[file] = _read(path) if own else None
        return self._texts[file]


def _read(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace") if path.is_file() else None
    except OSError:
        return None
