"""The texts that students read, as Babel finds them, their catalogues, and faults of Chinese."""

import ast
import gettext
import io
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO

import msgspec
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from grader.base.finding import Kind
from grader.base.language import Language
from grader.cli.comments import translated
from grader.cli.entry import DEFAULT, LINES, load
from grader.cli.options import Command, OptionGroup, members
from grader.record.refusals import REFUSALS
from grader.results.rungs import find_rungs
from ptxsim.findings import SENTENCES, Severity
from tests.support.places import ROOT

FOLDER = ROOT / "grader" / "base" / "catalogues"
RUNGS = ROOT / "reference"
KEYWORDS = {"phrase": None, "counted": (1, 2), "gettext": None, "ngettext": (1, 2), "_": None}
_PHRASES = ("phrase", "saying")
_WIDTH = 100


def of_python(
    file: IO[bytes], _keywords: object, _comments: object, options: object
) -> Iterator[tuple[int, str, str | tuple[str, str], list[str]]]:
    """A method for Babel, whose own sees no call within a call."""
    for node in ast.walk(ast.parse(file.read())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            texts = [each.value for each in node.args if isinstance(each, ast.Constant)]
            match called, texts:
                case name, [str() as text, *_] if name in _PHRASES:
                    yield node.lineno, "phrase", text, []
                case "counted", [str() as one, str() as many, *_]:
                    yield node.lineno, "counted", (one, many), []


def of_comments(
    file: IO[bytes], _keywords: object, _comments: object, options: object
) -> Iterator[tuple[int, str, str, list[str]]]:
    """A method for Babel that finds the comments of CUDA sources."""
    found: list[str] = []

    class Notes(gettext.NullTranslations):
        def gettext(self, message: str) -> str:
            found.append(message)
            return message

    translated(file.read().decode(), Language("", Notes()))
    yield from ((1, "", text, []) for text in found)


def catalogues() -> tuple[Path, ...]:
    return tuple(sorted(FOLDER.glob("*.po")))


def extracted(locale: str | None = None) -> Catalog:
    """Every text in the code and the templates. Places are left out: they would change daily."""
    found = Catalog(locale)
    for _file, _line, text, _comments, context in _found():
        found.add(text, context=context)
    return found


def read(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=path.stem)


def updated(path: Path) -> str:
    """The catalogue with a place for every text, and none for others. They are sorted by their
    English, so that changes by several people seldom touch the same lines."""
    old, new = read(path), extracted(path.stem)
    for message in new:
        known = old.get(message.id, message.context) if message.id else None
        if known is not None and known.string:
            message.string = known.string
        message.flags.clear()  # a per cent sign is no format
    file = io.BytesIO()
    write_po(file, new, width=_WIDTH, sort_output=True, omit_header=True)
    header = path.read_text(encoding="utf-8").split("\n\n")[0]
    return f"{header}\n\n{file.getvalue().decode().lstrip()}"


def _found() -> Iterator[tuple[str, int, str | tuple[str, ...], list[str], str | None]]:
    project = msgspec.toml.decode((ROOT / "pyproject.toml").read_bytes())
    settings = {each.pop("pattern"): each for each in project["tool"]["babel"]["mappings"]}
    methods = [(pattern, each.pop("method")) for pattern, each in settings.items()]
    for each in settings.values():
        each |= {name: str(value).lower() for name, value in each.items()}  # true, as Babel has it
    yield from extract_from_dir(ROOT, methods, settings, KEYWORDS)
    words = (each.value for each in (*Kind, *Severity))
    refusals = (each.sentence.text for each in REFUSALS)
    tabled = ([each] if isinstance(each, str) else each.values() for each in SENTENCES.values())
    events = filter(None, chain.from_iterable(tabled))
    shown = chain.from_iterable(_of_command(load(name)) for name in (DEFAULT, *LINES))
    texts = (*refusals, *words, *events, *filter(None, shown), *_of_tables())
    yield from (("", 1, text, [], None) for text in texts)
    for rung in (each for lab in sorted(RUNGS.iterdir()) for each in find_rungs(lab)):
        texts = (rung.title, rung.changed, rung.why)
        yield from ((rung.name, 1, text, [], None) for text in texts if text)


def _of_command(command: Command) -> Iterator[str]:
    options, below = command.options, command.commands.values()
    yield from (options.about, options.epilog, *(each.line for each in below))
    yield from _of_options(options)
    yield from chain.from_iterable(map(_of_command, below))


def _of_options(group: type[OptionGroup]) -> Iterator[str]:
    texts = [group.title]
    for _name, kind, option in members(group):
        if option is None:
            yield from _of_options(kind)
        elif isinstance(option.help, str):
            texts.append(option.help)
    yield from texts


# By the name of a table; the rows of the other two hold sentences by name.
_FIELDS = {"questions": ("text", "method"), "obstacles": ("what", "remedy")}


def _of_tables() -> Iterator[str | tuple[str, ...]]:
    for name in (*_FIELDS, "sentences", "words"):
        fields = _FIELDS.get(name, ())
        for table in ROOT.glob(f"grader/**/{name}.toml"):
            for row in msgspec.toml.decode(table.read_bytes()).values():
                said = row.get("said", {}) if fields else row
                for text in (*(row[field] for field in fields), *said.values()):
                    if text != "{words}":
                        yield tuple(text) if isinstance(text, list) else text


# Three English words in a row are a sentence that nobody translated.
_ENGLISH = re.compile(r"(?:\b[a-z]{2,}\b[ ,]+){2}\b[a-z]{2,}\b")
_COMMAND = re.compile(r"\bgrade [a-z]+ \S+")
_SIGN = re.compile(r"[\u4e00-\u9fff]")
# A space between two signs (columns have two between them), ASCII punctuation beside one.
_H = r"[\u3001-\u303f\u4e00-\u9fff\uff01-\uff65]"
_ODD = re.compile(rf"{_H} (?={_H})|{_H}[,;!?(]|[,;!?]{_H}|[^(]\){_SIGN.pattern}")


def assert_chinese(said: str) -> None:
    assert _SIGN.search(said), said
    assert not (found := _ENGLISH.search(_COMMAND.sub("", said))), found
    assert oddities(said) == []


def oddities(said: str) -> list[str]:
    """Places whose spaces or punctuation are not Chinese."""
    return [said[max(0, odd.start() - 30) : odd.end() + 30] for odd in _ODD.finditer(said)]
