"""Options as typed records: the fields of a command's record are what it takes.

A field's type says how: bool is a flag, a Literal one of its words, an int a number from 1, a tuple
may be repeated, ``… | None`` may be left out, and another ``OptionGroup`` stands for its options.
``parser`` makes the help and the record of a command line from them.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

from rich.console import Console

from ptxsim.text import NOTHING, Message, phrase

_T = TypeVar("_T")
_NO_DEFAULT: Any = None


class OptionGroup:
    """Base of what a command takes, and of options that stay together: frozen dataclasses. A
    command's docstring is the beginning of its help."""

    about: ClassVar[str]
    epilog: ClassVar[str] = ""
    title: ClassVar[str] = ""  # of a part of the help that is the group's own
    exclusive: ClassVar[bool] = False  # at most one of its flags may be given

    def __init_subclass__(cls) -> None:
        cls.about = " ".join((cls.__doc__ or "").split())
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)


@dataclasses.dataclass(frozen=True)
class Option:
    """Help for a field, and what its name and type leave open."""

    help: str | Message  # {default} stands for the default; a message speaks every language
    default: Any = None
    factory: Callable[[], Any] | None = None  # of a default that the course or the machine sets
    unset: Message = NOTHING  # shown where there is no default
    letter: str = ""  # "-v"
    positional: bool = False
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # for argparse

    def names(self, field: str) -> tuple[str, ...]:
        """Return what a command line calls it: ``--memory-mb``."""
        if self.positional:
            return (field,)
        return *filter(None, [self.letter]), "--" + field.replace("_", "-")


def option(
    help: str | Message,
    metavar: str | None = None,
    default: _T = _NO_DEFAULT,
    *,
    factory: Callable[[], _T] | None = None,
    unset: Message = NOTHING,
    **settings: Any,
) -> _T:
    """Declare ``--name METAVAR``. A ``type`` raises ValueError for what it does not take."""
    return cast(
        _T, Option(help, default, factory, unset, settings={"metavar": metavar, **settings})
    )


def argument(help: str | Message, metavar: str | None = None, **settings: Any) -> Any:
    """Declare a value that is known by its place."""
    return Option(help, positional=True, settings={"metavar": metavar, **settings})


def flag(help: str | Message, letter: str = "", **settings: Any) -> bool:
    """Declare ``--name``, and a letter for it."""
    settings = {"action": "store_true", **settings}
    return cast(bool, Option(help, default=False, letter=letter, settings=settings))


class Command(NamedTuple):
    """A command or subcommand: what it takes, and what runs it; or its subcommands."""

    options: type[OptionGroup]
    run: Callable[[Any, Console], int] | None = None
    line: str = ""  # in the list of subcommands
    metavar: str = ""  # of the subcommands
    commands: Mapping[str, Command] = {}


# --- what argparse is told of them ---------------------------------------------------------------


def members(options: Any) -> Iterator[tuple[str, Any, Option | None]]:
    """Yield the name, type and option of each field of a record; None for a group of options."""
    kinds = typing.get_type_hints(options)
    for field in dataclasses.fields(options):
        option = field.default if isinstance(field.default, Option) else None
        yield field.name, kinds[field.name], option


def settings(kind: Any, option: Option) -> Mapping[str, Any]:
    """Return the settings of an option whose field is of this type."""
    if kind is bool:
        return option.settings
    optional = type(None) in typing.get_args(kind)
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        kind = typing.get_args(kind)[0]
    if many := typing.get_origin(kind) is tuple:
        kind = typing.get_args(kind)[0]
    found: dict[str, Any] = {"type": _READ.get(kind)}
    if typing.get_origin(kind) is typing.Literal:
        found["choices"] = typing.get_args(kind)
    if option.positional:
        found["nargs"] = "+" if many else "?" if optional else None
    elif many:
        found["action"] = "append"
    else:
        preset = option.default is not None or option.factory is not None
        found["required"] = not (optional or preset)
    return {**found, **option.settings}


def record(options: type[_T], values: Mapping[str, Any]) -> _T:
    """Return the record of a command line's values."""
    found = {}
    for name, kind, option in members(options):
        if option is None:
            found[name] = record(kind, values)
        else:
            many = typing.get_origin(kind) is tuple
            found[name] = tuple(values[name] or ()) if many else values[name]
    return options(**found)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(phrase("expected a number ≥ 1, got {value}", value=repr(text)))
    return int(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(phrase("expected a number, got {value}", value=repr(text))) from None


_READ: Mapping[Any, Callable[[str], Any]] = {Path: Path, int: _positive, float: _number}
