"""The command line in the language of the terminal: argparse's own words, and those of commands."""

from __future__ import annotations

import argparse
import os
import re
import sys
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from rich.cells import cell_len

import grader
from grader import labs, report
from grader.base import ENGLISH, Language, UsageError, convert, known_languages, one_line
from grader.cli.defaults import default_of
from grader.labs import did_you_mean
from grader.sandbox import Mode
from ptxsim.plan import Record
from ptxsim.text import Message, clauses, phrase, recognised

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
    """argparse's, which speaks a language."""

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
            shown = language(phrase("show this help message and exit"))
            self.add_argument("-h", "--help", action="help", help=shown)

    def error(self, message: str) -> NoReturn:
        said = recognised(message, _COMPLAINTS)
        if isinstance(what := said.args.get("what"), str):
            said = said.given(what=recognised(what, _COMPLAINTS))
        unknown = str(said.args.get("words", "")).partition(" ")[0]
        if meant := did_you_mean(unknown, self._known_options()):
            said = clauses([said, meant])
        self.print_usage(sys.stderr)
        words = phrase("{program}: error: {complaint}", program=self.prog, complaint=said)
        self.exit(2, f"{self.language(words)}\n")

    def _known_options(self) -> list[str]:
        """Return its options, and those of its subcommands."""
        found = list(self._option_string_actions)
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                found += [
                    name for each in action.choices.values() for name in each._known_options()
                ]
        return found


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


# --- commands ----------------------------------------------------------------------------------


class Command(Record):
    """A command as commands.toml describes it, whose first lines say how."""

    line: str = ""  # in the list of commands
    english: bool = False  # its own texts, whatever the reader's language
    about: str = ""
    epilog: str = ""
    options: tuple[Any, ...] = ()
    subcommands: str = ""  # "course COMMAND": where the chosen one's name goes, and its metavar
    commands: Mapping[str, Command] = {}


@cache
def _table() -> dict[str, Any]:
    file = Path(__file__).with_name("commands.toml")
    table: dict[str, Any] = msgspec.toml.decode(file.read_bytes())
    return table


@cache
def commands() -> Mapping[str, Command]:
    """Return the commands in the order of the list; the first is ``grade SUBMISSION…``."""
    known = {name: table for name, table in _table().items() if not name.startswith("shared")}
    return convert(known, dict[str, Command])


def describe(parser: Parser, command: Command, *, english: bool = False) -> None:
    """Give a parser the texts, options and subcommands of its command."""
    english = english or command.english

    def said(text: str) -> str:
        return text if english else parser.language(Message(text=text))

    parser.description = said(command.about) if command.about else None
    if command.epilog:
        parser.epilog = said(command.epilog)
    target: argparse._ActionsContainer = parser
    for each in command.options:
        if each[0] == "group":
            target = parser.add_argument_group(each[1])
        else:
            _add(parser, target, each, english)
    if command.subcommands:
        place, metavar = command.subcommands.split()
        parsers = parser.add_subparsers(dest=place, metavar=metavar, required=True)
        for name, one in command.commands.items():
            below = parsers.add_parser(name, help=said(one.line), language=parser.language)
            describe(below, one, english=english)


def _add(parser: Parser, target: argparse._ActionsContainer, entry: Any, english: bool) -> None:
    """Add an option, or the options that a word stands for."""
    if isinstance(entry, str):
        target = parser.add_mutually_exclusive_group() if entry == "detail" else target
        shared = entry in _table()["shared"]
        for each in _table()["shared" if shared else "shared-english"][entry]:
            _add(parser, target, each, english=not shared)
        return
    words, text, settings = entry[0], entry[1], dict(*entry[2:])
    default, shown = settings.get("default"), settings.pop("shown", None)
    if isinstance(default, str) and default in _DEFAULTS:
        default = settings["default"] = _DEFAULTS[default]()
    help = Message(text=text)
    if shown is not None:
        known = str(default) if default else Message(text=shown)
        help = help if "{default}" in text else _DEFAULTING.given(meaning=help)
        help = help.given(default=known)
    if "type" in settings:
        settings["type"] = _TYPES[settings["type"]]
    if isinstance(choices := settings.get("choices"), str):
        settings["choices"] = _CHOICES[choices]()
    if settings.get("action") == "version":
        settings["version"] = f"grade {grader.__version__}"
    _option(target, words, str(help) if english else parser.language(help), **settings)


def _option(target: argparse._ActionsContainer, words: str, help: str, **settings: Any) -> None:
    """Add ``--jobs N``; without a name for its value, and settings, it is a flag."""
    *names, last = words.split(" ")
    if names and not last.startswith("-"):
        settings["metavar"] = last
    else:
        names.append(last)
        if last.startswith("-") and not settings:
            settings["action"] = "store_true"
    # argparse fills in after a per cent sign
    target.add_argument(*names, help=help.replace("%", "%%"), **settings)


def language(parser: Parser) -> None:
    """For the help alone: ``language_of`` takes it out before commands are parsed."""
    help = phrase("one of {languages}; else that of $LANG, else the lab's")
    languages = ", ".join(known_languages())
    _option(parser, "--language LANG", parser.language(help.given(languages=languages)))


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


# --- values of options ---------------------------------------------------------------------------


def find_submission(named: str, commands: Iterable[str] = ()) -> Path:
    """Return the folder ``named``, else the one of this name in submissions/.

    Raises UsageError where neither is there, but something is that was probably meant.
    """
    path, among = Path(named), Path("submissions")
    if os.path.lexists(path) or path.name != named or named == "..":
        return path
    if os.path.isdir(among / named):  # noqa: PTH112 - False where a name is too long
        return among / named
    there = [each.name for each in among.iterdir() if each.is_dir()] if among.is_dir() else []
    if meant := did_you_mean(named, [*commands, *there]):
        nothing = phrase("{name}: no such folder or command; {meant}", name=one_line(named))
        raise UsageError(nothing.given(meant=meant))
    return path


def _stored_document(named: str) -> Path:
    """Return the path of a file that is there. Raises UsageError."""
    if not os.path.lexists(named):
        none = phrase("{place}: {what}", place=one_line(named), what=phrase("no such file"))
        raise UsageError(none)
    return Path(named)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(str(NOT_POSITIVE.given(value=repr(text))))
    return int(text)


def _percent(text: str) -> float:
    if not re.fullmatch(r"\d{1,3}(\.\d+)?", text) or not 0 < float(text) <= 100:
        raise argparse.ArgumentTypeError(f"expected a number over 0 and up to 100, got {text!r}")
    return float(text)


def _architecture(pattern: str, example: str, text: str) -> str:
    if not re.fullmatch(pattern, text):
        wanted = f"expected an architecture such as {example}, got {text!r}"
        raise argparse.ArgumentTypeError(wanted)
    return text


def _explained(read: Callable[[str], Any], text: str) -> Any:
    """Let argparse show what ``read`` says in a ValueError."""
    try:
        return read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


_TYPES: Mapping[str, Callable[[str], Any]] = {
    "path": Path,
    "submission": find_submission,
    "document": _stored_document,
    "result": lambda named: (_stored_document if named.endswith(".json") else find_submission)(
        named
    ),
    "number": float,
    "positive": _positive,
    "percent": _percent,
    "architecture": partial(_architecture, r"sm_\d{2,3}[af]?", "sm_90"),
    "plain-architecture": partial(_architecture, r"sm_\d{2,3}", "sm_80"),
    "due": partial(_explained, labs.due_rule),
    "weights": partial(_explained, labs.read_weights),
}
_DEFAULTING = phrase("{meaning} (default: {default})")
_DEFAULTS: Mapping[str, Callable[[], Any]] = {  # of the course and the machine
    "the course's lab": lambda: default_of("lab"),
    "the course's folder": lambda: f"{Path(str(default_of('out') or 'results'))}/",
    "cores": lambda: len(os.sched_getaffinity(0)),
}
_CHOICES: Mapping[str, Callable[[], Sequence[str]]] = {
    "sandboxes": lambda: typing.get_args(Mode),
    "attempts": lambda: typing.get_args(labs.Attempts),
    "visibility": lambda: typing.get_args(report.Visibility),
    "shells": lambda: import_module("shtab").SUPPORTED_SHELLS,  # which no other command needs
}
