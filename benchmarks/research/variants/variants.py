"""Variants of one rung: its sources with some of the text replaced.

One per line: ``name: old => new %% old => new``. A source must hold every ``old``, within one line;
``\\n`` in ``new`` breaks the line.
``name@512,1024:`` limits the sizes it is timed at. Lines that begin with # are comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ptxsim.plan import Record

_LINE = re.compile(r"(?P<name>[\w.+-]+)(?:@(?P<sizes>[\d,]+))?:(?P<changes>.*)")


class Variant(Record):
    """A named set of changes to a rung's source."""

    name: str
    changes: tuple[tuple[str, str], ...]
    sizes: tuple[int, ...]  # empty: all

    def write(self, rung: Path, folder: Path) -> Path:
        """A submission folder with the changed source. Raises ValueError if a text is missing."""
        texts = {file.name: file.read_text() for file in sorted(rung.glob("*.cu*"))}
        for old, new in self.changes:
            if not any(old in text for text in texts.values()):
                raise ValueError(f"{self.name}: no source of {rung} has {old!r}")
            texts = {name: text.replace(old, new) for name, text in texts.items()}
        target = folder / self.name
        target.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (target / name).write_text(text)
        return target


def parse(text: str) -> Iterator[Variant]:
    """The variants of a list. Raises ValueError with a line that is none."""
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line.strip())
        if found is None:
            raise ValueError(f"not a variant: {line}")
        pairs = [change.split("=>") for change in found["changes"].split("%%") if change.strip()]
        yield Variant(
            name=found["name"],
            changes=tuple((old.strip(), new.strip().replace(r"\n", "\n")) for old, new in pairs),
            sizes=tuple(int(size) for size in (found["sizes"] or "").split(",") if size),
        )
