"""Sentences that stand in a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from ptxsim.text import Message, verbatim


class Sentences:
    """Sentences of a table, by section and name; a pair of them is for one and for many."""

    def __init__(self, sections: Mapping[str, Mapping[str, str | list[str]]]) -> None:
        self._sections = sections

    @classmethod
    def of(cls, table: Path) -> Sentences:
        return cls(msgspec.toml.decode(table.read_bytes()))

    def names(self, section: str) -> Iterable[str]:
        return self._sections[section]

    def words(self, section: str, name: str) -> Message:
        """Return the words of this name; the name itself where the section has none."""
        known = name in self._sections[section]
        return self.say(f"{section}.{name}") if known else verbatim(name)

    def say(self, place: str, /, **args: int | float | str | Message) -> Message:
        """Fill in the sentence at "section.name"."""
        section, _, name = place.partition(".")
        found = self._sections[section][name]
        one, many = (found, None) if isinstance(found, str) else found
        return Message(text=one, plural=many).given(**args)
