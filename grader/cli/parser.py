"""The command line in the language of the terminal: argparse's help and its errors."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NoReturn, cast

from rich.cells import cell_len

from grader.base import Language, known_languages
from grader.cli.options import Command, OptionGroup, members, settings
from grader.labs import did_you_mean
from ptxsim.text import Message, clauses, phrase, verbatim

_HEADING = re.compile(r"(?<=[\u4e00-\u9fff]):$", re.MULTILINE)  # its end, in Chinese
# What stays together on a line: a word, or one Chinese sign; with the punctuation around it.
_PIECE = re.compile(r"[（“]*(?:[\u2e80-\uffef]|[^\s\u2e80-\uffef]+)[，。；：、）”]*|\s+")


class Parser(argparse.ArgumentParser):
    """argparse's, which speaks a language and is told of options by records."""

    def __init__(
        self, *, language: Language, raw: bool = False, add_help: bool = True, **settings: Any
    ) -> None:
        """raw: description and epilog have their line breaks already."""
        layout = partial(_Layout, language=language, raw=raw)
        super().__init__(add_help=False, formatter_class=layout, exit_on_error=False, **settings)
        self.language = language
        self._given: list[argparse.Action] = []  # what has a value
        self._positionals.title = language(phrase("positional arguments"))
        self._optionals.title = language(phrase("options"))
        if add_help:
            shown = language(phrase("show this help message and exit"))
            self.add_argument("-h", "--help", action="help", help=shown)

    def describe(self, command: Command) -> None:
        """Take a command's texts, options and subcommands."""
        group = command.options
        self.set_defaults(command=command)
        self.description = self._said(group.about) or None
        self.epilog = self._said(group.epilog) or self.epilog
        self._add_group(group, self)
        if command.commands:
            below = self.add_subparsers(dest="subcommand", metavar=command.metavar, required=True)
            for name, each in command.commands.items():
                parser = below.add_parser(name, help=self._said(each.line), language=self.language)
                parser.describe(each)

    def add_language(self) -> None:
        """For the help alone: ``language_of`` takes it out before commands are parsed."""
        help = phrase("one of {languages}; else that of $LANG, else the lab's")
        help = help.given(languages=", ".join(known_languages()))
        self.add_argument("--language", metavar="LANG", help=self.language(help))

    def _add_group(self, group: type[OptionGroup], target: argparse._ActionsContainer) -> None:
        if group.title:
            target = self.add_argument_group(self._said(group.title))
        if group.exclusive:
            target = self.add_mutually_exclusive_group()
        for name, kind, option in members(group):
            if option is None:
                self._add_group(kind, target)
                continue
            default = option.factory() if option.factory else option.default
            shown = option.unset if default is None else str(default)
            help = self._said(option.help, default=shown)
            target.add_argument(
                *option.names(name),
                default=default,
                help=help.replace("%", "%%"),  # argparse fills in after a per cent sign
                **settings(kind, option),
            )

    def _said(self, text: str | Message, **places: str | Message) -> str:
        told = text if isinstance(text, Message) else Message(text=text)
        return self.language(told.given(**places))

    # --- parsing: what argparse refuses is told in our words ------------------------------------

    def read(self, words: Sequence[str]) -> dict[str, Any]:
        """Return what a command line says; exit where it is wrong."""
        chosen, unknown = self.parse_known_args(words)
        if unknown:
            said = phrase("unrecognized arguments: {words}", words=" ".join(unknown))
            meant = did_you_mean(unknown[0].partition(" ")[0], self._known_options())
            self._refuse(clauses([said, meant]) if meant else said)
        values: dict[str, Any] = vars(chosen)
        return values

    def parse_known_args(self, words: Any = None, chosen: Any = None) -> Any:  # type: ignore[override]
        try:
            return super().parse_known_args(words, chosen)
        except argparse.ArgumentError as error:
            if error.argument_name is None:
                self.error(error.message)
            name, ours = error.argument_name, cast(Any, error.message)
            what = ours if isinstance(ours, Message) else self._misused(name)
            self._refuse(phrase("argument {name}: {what}", name=name, what=what))

    def error(self, _message: str) -> NoReturn:
        needed = (action for action in self._actions if action.required)
        missing = ", ".join(_label(action) for action in needed if action not in self._given)
        self._refuse(phrase("the following arguments are required: {names}", names=missing))

    def _misused(self, name: str) -> Message:
        """Say what is wrong with an option that lacks a value, or with a flag."""
        if any(_label(action) == name and action.nargs != 0 for action in self._actions):
            return phrase("expected one argument")
        for group in self._mutually_exclusive_groups:
            given = [_label(each) for each in group._group_actions if each in self._given]
            if name in given and len(given) > 1:
                given.remove(name)
                return phrase("not allowed with argument {other}", other=given[0])
        return phrase("takes no value")

    def _refuse(self, said: Message) -> NoReturn:
        self.print_usage(sys.stderr)
        words = phrase("{program}: error: {complaint}", program=self.prog, complaint=said)
        self.exit(2, f"{self.language(words)}\n")

    def _known_options(self) -> Iterator[str]:
        """Yield its options, and those of its subcommands."""
        yield from self._option_string_actions
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for below in action.choices.values():
                    yield from below._known_options()

    def _get_option_tuples(self, word: str) -> Any:
        found = super()._get_option_tuples(word)
        if len(found) > 1:
            names = ", ".join(each[1] for each in found)
            several = phrase("ambiguous option: {option} could match {names}", option=word)
            self._refuse(several.given(names=names))
        return found

    def _get_values(self, action: argparse.Action, words: list[str]) -> Any:
        self._given.append(action)
        return super()._get_values(action, words)

    def _get_value(self, action: argparse.Action, text: str) -> Any:
        try:
            return action.type(text) if callable(action.type) else text
        except ValueError as error:
            raise _refusal(action, error.args[0]) from None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = ", ".join(map(repr, action.choices))
            no = phrase("invalid choice: {value} (choose from {choices})", value=repr(value))
            raise _refusal(action, no.given(choices=choices))


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

    def format_help(self) -> str:
        return _HEADING.sub("：", super().format_help())  # argparse writes the colon itself

    def _split_lines(self, text: str, width: int) -> list[str]:
        return broken(text, width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = text.splitlines() if self._raw else broken(text, width)
        return "\n".join(indent + line for line in lines)


def broken(text: str, width: int) -> list[str]:
    """Break a text into lines of at most so many cells."""
    lines = [""]
    for piece in _PIECE.findall(" ".join(text.split())):
        if cell_len((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece if lines[-1] else piece.lstrip()
    return [line.rstrip() for line in lines]


def _refusal(action: argparse.Action, what: Message | str) -> argparse.ArgumentError:
    return argparse.ArgumentError(action, cast(Any, verbatim(what)))


def _label(action: argparse.Action) -> str:
    return argparse.ArgumentError(action, "").argument_name or ""


def language_of(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """The value of ``--language``, which may stand anywhere, and the other arguments."""
    chosen, others = None, list(arguments)
    end = others.index("--") if "--" in others else len(others)
    for place in reversed(range(end)):
        name, given, value = others[place].partition("=")
        if name == "--language" and (given or place + 1 < end):
            chosen = chosen or (value if given else others[place + 1])
            del others[place : place + (1 if given else 2)]
    return chosen, others
