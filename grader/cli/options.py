"""The command line in the language of the terminal: argparse's own words, and those of commands."""

from __future__ import annotations

import argparse
import os
import re
import sys
import typing
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from rich.cells import cell_len

from grader.base import ENGLISH, Language, UsageError, known_languages, one_line
from grader.cli.defaults import default_of
from grader.labs import Attempts, TimeRules, did_you_mean, due_rule
from grader.sandbox import Mode
from ptxsim.message import Message, clauses, phrase, recognised

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
        """Set the description of the command."""
        self.description = self.language(what)

    def add_argument(
        self, *names: str, help: Message | str | None = None, **settings: Any
    ) -> argparse.Action:
        if isinstance(help, Message):
            help = self.language(help).replace("%", "%%")  # argparse fills in after a per cent sign
        return super().add_argument(*names, help=help, **settings)

    def option(self, words: str, help: Message | str, **settings: Any) -> None:
        """Add ``--jobs N``; without a name or choices for its value it is a flag."""
        *names, last = words.split(" ")
        if last.startswith("-"):
            names.append(last)
            if not settings.get("choices"):
                settings["action"] = "store_true"
        else:
            settings["metavar"] = last
        self.add_argument(*names, help=help, **settings)

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


# --- options -----------------------------------------------------------------------------------

_FIRST_LAB = phrase("the first that grade labs lists")
_WHERE_IT_RUNS = phrase("where kernels run; cpu is the simulator")
_WHERE_TO_WRITE = phrase("where results are written")
_DEFAULTING = phrase("{meaning} (default: {default})")


_SUBMISSION = phrase("folder of a submission, or its name in submissions/")


def submission(parser: Parser, name: str = "submission", **settings: str) -> None:
    """The folder, for a command that takes one submission, or with ``nargs`` several."""
    parser.add_argument(
        name, metavar="SUBMISSION", type=find_submission, help=_SUBMISSION, **settings
    )


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


def stored_document(named: str) -> Path:
    """Return the path of a file that is there. Raises UsageError."""
    if not os.path.lexists(named):
        raise UsageError(
            phrase("{place}: {what}", place=one_line(named), what=phrase("no such file"))
        )
    return Path(named)


def lab(parser: Parser, default: Message = _FIRST_LAB) -> None:
    """default: what another lab than the course's own means."""
    help = phrase("a lab file, or one of the labs that grade labs lists (default: {default})")
    own = default_of("lab") if default is _FIRST_LAB else None
    parser.option("--lab LAB", help.given(default=own or default), default=own)


def device(parser: Parser, meaning: Message = _WHERE_IT_RUNS) -> None:
    help = _DEFAULTING.given(meaning=meaning, default="auto")
    parser.option("--device", help, choices=("auto", "gpu", "cpu"), default="auto")


def out(parser: Parser, meaning: Message = _WHERE_TO_WRITE) -> None:
    own = Path(default_of("out") or "results")
    help = _DEFAULTING.given(meaning=meaning, default=f"{own}/")
    parser.option("--out DIR", help, type=Path, default=own)


def sandbox(parser: Parser, default: str = "auto") -> None:
    help = phrase(
        "auto: bubblewrap if it works, else Landlock, else limits only; require: not limits only; "
        "bubblewrap, landlock: this one; off: limits only (default: {default})",
        default=default,
    )
    parser.option("--sandbox", help, choices=typing.get_args(Mode), default=default)


def language(parser: Parser) -> None:
    """For the help alone: ``language_of`` takes it out before commands are parsed."""
    help = phrase("one of {languages}; else that of $LANG, else the lab's")
    languages = ", ".join(known_languages())
    parser.option("--language LANG", help.given(languages=languages))


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


def detail(parser: Parser) -> None:
    """How much of a result is shown."""
    group = parser.add_mutually_exclusive_group()
    for names, const, meaning in (
        (("-v", "--verbose"), "all", phrase("show every size, kernel, GPU and idea")),
        (("-q", "--quiet"), "verdict", phrase("show only the verdict")),
    ):
        group.add_argument(
            *names,
            dest="detail",
            action="store_const",
            const=const,
            default="brief",
            help=parser.language(meaning),
        )


def no_report(parser: Parser) -> None:
    parser.option("--no-report", phrase("write no HTML report"))


# --- of commands that grade many submissions --------------------------------------------------


def batch(parser: Parser, *, default_lab: Message | None = None) -> None:
    """Options of the commands that grade many submissions."""
    lab(parser, *([default_lab] if default_lab else []))
    device(
        parser,
        phrase(
            "where kernels run; cpu is the simulator; on a GPU one submission is timed at a time"
        ),
    )
    out(parser)
    add = parser.option
    add("--force", phrase("grade again even if there is a result"))
    add(
        "--only NAME",
        phrase("only this submission; * and ? are wildcards; may be repeated"),
        action="append",
    )
    add(
        "--jobs N",
        phrase(
            "submissions graded at a time, or compiled ahead of the GPU (default: one per core)"
        ),
        type=positive,
        default=len(os.sched_getaffinity(0)),
    )
    no_report(parser)
    sandbox(parser)


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(str(NOT_POSITIVE.given(value=repr(text))))
    return int(text)


# --- of commands that read stored results -----------------------------------------------------


def selection(parser: Parser) -> None:
    """Options that choose results and how they count."""
    out(parser, phrase("where the results are"))
    add = parser.option
    add(
        "--lab LAB",
        phrase("only this lab's results: its id, or its file, whose rules of time then hold"),
    )
    add("--device", phrase("only results of this device"), choices=("gpu", "cpu"))
    add("--gpu MODEL", phrase("only GPUs whose model name contains this text"))
    add(
        "--choose",
        phrase("the result that counts for a student (default: what the lab file says, else best)"),
        choices=typing.get_args(Attempts),
    )
    add("--no-ladder", phrase("leave out the rungs that grade ladder measured"))
    add("--roster FILE", phrase("CSV file, see docs/instructor.md"), type=Path)
    add(
        "--due RULE",
        phrase(
            "instead of the lab file's rules of time: a time such as 2026-01-31T23:59+01:00, "
            "and with commas grace=10m, late=5%/day or late=2/hour, and most=40%"
        ),
        type=_due,
    )


def _due(value: str) -> TimeRules:
    try:
        return due_rule(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def pictures(parser: Parser) -> None:
    add = parser.option
    add("--svg FILE", phrase("write the picture as SVG, for a report"), type=Path)
    add("--png FILE", phrase("write the picture as PNG, for a report"), type=Path)
