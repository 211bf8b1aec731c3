"""The command line in the language of the terminal: argparse's own words, and those of commands."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from functools import partial
from typing import Any, NoReturn

from rich.cells import cell_len

from grader.language import ENGLISH, Language
from grader.model import Message, phrase
from ptxsim.message import recognised

NOT_POSITIVE = phrase("expected a number ≥ 1, got {value}")
_COMPLAINTS = (  # of argparse and of types of arguments; in English as they raise them
    phrase("the following arguments are required: {names}"),
    phrase("unrecognized arguments: {words}"),
    phrase("argument {name}: {what}"),
    phrase("expected one argument"),
    phrase("expected at least one argument"),
    phrase("invalid choice: {value} (choose from {choices})"),
    phrase("ignored explicit argument {value}"),
    NOT_POSITIVE,
)
# What stays together on a line: a word, or one Chinese sign; with the punctuation around it.
_PIECE = re.compile(r"[（“]*(?:[\u2e80-\uffef]|[^\s\u2e80-\uffef]+)[，。；：、）”]*|\s+")


class Parser(argparse.ArgumentParser):
    """argparse's, which also takes help as messages."""

    def __init__(
        self,
        *,
        language: Language = ENGLISH,
        raw: bool = False,
        add_help: bool = True,
        **settings: Any,
    ) -> None:
        """raw: description and epilog have their line breaks already."""
        self.language = language
        layout = partial(_Layout, language=language, raw=raw)
        super().__init__(add_help=False, formatter_class=layout, **settings)
        self._positionals.title = language(phrase("positional arguments"))
        self._optionals.title = language(phrase("options"))
        if add_help:
            self.add_argument(
                "-h", "--help", action="help", help=phrase("show this help message and exit")
            )

    def describe(self, what: Message) -> None:
        """What the command does."""
        self.description = self.language(what)

    def add_argument(
        self, *names: str, help: Message | str | None = None, **settings: Any
    ) -> argparse.Action:
        if isinstance(help, Message):
            help = self.language(help).replace("%", "%%")  # argparse fills in after a per cent sign
        return super().add_argument(*names, help=help, **settings)

    def error(self, message: str) -> NoReturn:
        said = recognised(message, _COMPLAINTS)
        if isinstance(what := said.args.get("what"), str):
            said = said.given(what=recognised(what, _COMPLAINTS))
        self.print_usage(sys.stderr)
        words = phrase("{program}: error: {complaint}", program=self.prog, complaint=said)
        self.exit(2, f"{self.language(words)}\n")


class _Layout(argparse.HelpFormatter):
    """Lines broken where the language allows it; a Chinese sign is as wide as two others."""

    def __init__(self, prog: str, *, language: Language, raw: bool) -> None:
        super().__init__(prog)
        self._words = language
        self._raw = raw

    def add_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[argparse._MutuallyExclusiveGroup],
        prefix: str | None = None,
    ) -> None:
        head = self._words(phrase("usage: ")) if prefix is None else prefix
        super().add_usage(usage, actions, groups, head)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return _broken(text, width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = text.splitlines() if self._raw else _broken(text, width)
        return "\n".join(indent + line for line in lines)


def _broken(text: str, width: int) -> list[str]:
    lines = [""]
    for piece in _PIECE.findall(" ".join(text.split())):
        if cell_len((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece if lines[-1] else piece.lstrip()
    return [line.rstrip() for line in lines]
