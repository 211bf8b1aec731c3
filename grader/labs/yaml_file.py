"""A YAML file → a mapping; every mistake is one line with its place."""

import difflib
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache, reduce
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import yaml

from grader.base import LabError, Sentences
from ptxsim.plan import Record
from ptxsim.text import NOTHING, Message, phrase, verbatim

say = Sentences.of(Path(__file__).with_name("sentences.toml")).say


class _Loader(yaml.SafeLoader):
    """SafeLoader keeps the last of two equal keys; a lab must not lose one silently. Times stay
    text: SafeLoader drops a zone that it cannot read."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own, one tag less
        first: [each for each in resolvers if each[0] != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        mapping: dict[Hashable, Any] = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=deep)
            if not isinstance(key, str):
                problem = f"expected a field name, got the key {key!r}"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            if key in mapping:
                problem = f"key {key!r} appears twice; keep one"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            mapping[key] = self.construct_object(value_node, deep=deep)
        return mapping


def read_file(path: Path, missing: Message | None = None) -> bytes:
    """missing: what to say where there is no such file. Raises LabError."""
    try:
        return path.read_bytes()
    except OSError as error:
        if missing and isinstance(error, FileNotFoundError):
            raise LabError(missing) from None
        why = phrase("cannot be read: {why}", why=error.strerror or str(error))
        raise LabError(at(str(path), why)) from None


def parse(path: Path, data: bytes, example: Path) -> dict[str, Any]:
    """example: what a message about an empty file names. Raises LabError."""
    try:
        document = yaml.load(data, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        why = str(error.problem or error.context)
        raise LabError(at(where, phrase("not valid YAML: {why}", why=why))) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # dates, huge numbers, nesting
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise LabError(at(str(path), phrase("not valid YAML: {why}", why=reason))) from None
    if document is None:
        empty = phrase("the file is empty; start from {example}", example=str(example))
        raise LabError(at(str(path), empty))
    if not isinstance(document, dict):
        fields = phrase("fields such as {example}", example="'id: sgemm'")
        raise LabError(at(str(path), wanted(fields, show(document))))
    return document


# --- complaints --------------------------------------------------------------------------------

_LOCATION = re.compile(r" - at `(?:key in )?\$\.?(?P<path>[^`]*)`$")
_MISSING = re.compile(r"missing required field `(?P<name>[^`]+)`")
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]+)`")


@cache
def known_words() -> Mapping[str, Message]:
    """Words for fields whose types say too little: by ``Record.field``."""
    table = msgspec.toml.decode(Path(__file__).with_name("words.toml").read_bytes())
    return {
        f"{record}.{field}": Message(text=text)
        for record, fields in table.items()
        for field, text in fields.items()
    }


def explain(
    error: msgspec.ValidationError,
    document: Mapping[str, Any],
    record: type[Record],
    words: Mapping[str, Message],
) -> Message:
    """``path: what is wrong there``, with a remedy where one can be guessed.

    record: what the document should be. words: more than ``known_words``.
    """
    expected = {**known_words(), **words}
    complaint = str(error)
    location = _LOCATION.search(complaint)
    path = location["path"] if location else ""
    if unknown := _UNKNOWN.search(complaint):
        remedy = instead_of(unknown["name"], _fields(_type_at(record, path)))
        field = _join(path, unknown["name"])
        return at(field, phrase("unknown key; {remedy}", remedy=remedy))
    if missing := _MISSING.search(complaint):
        path = _join(path, missing["name"])
        what = _words(path, complaint, record, expected)
        return at(path, phrase("missing; expected {words}", words=what))
    if _key(record, path) not in expected:
        # One number of a size is wrong: show the whole size.
        outer = re.sub(r"\[\d+\]$", "", path)
        path = outer if _key(record, outer) in expected else path
    what = _words(path, complaint, record, expected)
    return at(path or phrase("the file"), wanted(what, show(_at(document, path))))


def at(field: str | Message, what: Message) -> Message:
    """Return the complaint ``what`` with its field."""
    return phrase("{field}: {what}", field=field, what=what)


def wrong(field: str, mistake: str, **args: int | float | str | Message) -> Message:
    """Return a mistake that sentences.toml words, with its field."""
    return at(field, say(mistake, **args))


def wanted(words: str | Message, got: str | Message) -> Message:
    return phrase("expected {words}, got {value}", words=words, value=got)


def instead_of(name: str, known: Sequence[str]) -> Message:
    """The known name that is like this one, or else all."""
    return did_you_mean(name, known) or phrase("known here: {names}", names=", ".join(known))


def did_you_mean(name: str, known: Iterable[str]) -> Message:
    """Ask for the known name that is like this one; NOTHING where none is."""
    close = difflib.get_close_matches(name, list(known), 1)
    return phrase("did you mean {name}?", name=repr(close[0])) if close else NOTHING


def show(value: object) -> str | Message:
    """A found value, short enough for one line."""
    if value is None:
        return phrase("nothing")
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def show_size(size: tuple[int, ...] | int) -> str:
    """A size as YAML has it: "[64, 64, 64]", or a number where there is one dimension."""
    return str(list(size) if isinstance(size, tuple) else size)


def _words(
    path: str, complaint: str, record: type[Record], expected: Mapping[str, Message]
) -> Message:
    if words := expected.get(_key(record, path)):
        return words
    kind = _type_at(record, path)
    if get_origin(kind) is Literal:
        return either(map(repr, get_args(kind)))
    if fields := _fields(kind):
        return phrase("a mapping with {names}", names=", ".join(fields))
    if get_origin(kind) is Annotated:
        number, limits = get_args(kind)
        if number is int and limits.ge == 1 and limits.le is not None:
            return phrase("an integer from 1 to {most}", most=limits.le)
        if number is float and limits.gt == 0:
            return phrase("a number > 0")
        if number is float and limits.ge == 0:
            return phrase("a number ≥ 0")
    return verbatim(complaint.split(" - at ")[0])


def either(choices: Iterable[str]) -> Message:
    """``a or b or c``."""
    first, *others = map(verbatim, choices)
    return reduce(
        lambda one, other: phrase("{one} or {other}", one=one, other=other), others, first
    )


def _key(record: type[Record], path: str) -> str:
    outer, _, field = re.sub(r"\[\d+\]", "[]", path).rpartition(".")
    return f"{getattr(_type_at(record, outer), '__name__', '')}.{field}"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _fields(kind: Any) -> tuple[str, ...]:
    return getattr(kind, "__struct_fields__", ())


def _type_at(record: type[Record], path: str) -> Any:
    """The type at ``performance[1].mnk`` in a record's document; None if there is no such field."""
    found: Any = record
    for name, element in re.findall(r"([^.\[\]]+)|(\[\d*\])", path):
        if get_origin(found) is Annotated:
            found = get_args(found)[0]
        if element:
            found = next(iter(get_args(found)), None)
        else:
            found = get_type_hints(found, include_extras=True).get(name) if _fields(found) else None
        if get_origin(found) in (Union, UnionType):  # with None
            found = get_args(found)[0]
    return found


def _at(document: Any, path: str) -> Any:
    """The value at ``performance[1].mnk``; None where msgspec names what is not there."""
    value = document
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and index and int(index) < len(value):
            value = value[int(index)]
        else:
            return None
    return value
