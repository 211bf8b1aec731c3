"""A course's own defaults of --lab, --out and --language: variables of the environment, else the
nearest ``grade.toml``, here or in a folder above."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from grader.base import UsageError, one_line
from grader.labs import did_you_mean, read
from ptxsim.plan import Record
from ptxsim.text import Message, clauses, phrase

FILE = "grade.toml"
SUBMISSIONS = "submissions"
VARIABLES = {"lab": "GRADE_LAB", "out": "GRADE_OUT", "language": "GRADE_LANGUAGE"}


class Default(Record):
    """The default of one option."""

    name: str  # "lab"
    value: str
    origin: str  # the variable or the file

    def __str__(self) -> str:
        return self.value


def read_defaults(environment: Mapping[str, str], here: Path) -> dict[str, Default]:
    """Return the defaults by name. Raises UsageError for a file that is wrong."""
    found = _of_file(here)
    for name, variable in VARIABLES.items():
        if value := environment.get(variable):
            found[name] = Default(name=name, value=value, origin=variable)
    return found


def default_of(name: str) -> Default | None:
    """Return the default that a course has here for an option. Raises UsageError."""
    return read_defaults(os.environ, Path.cwd()).get(name)


def course_root() -> Path:
    """Return the folder in which submissions/ and results/ are meant, relative to where we are:
    inside a submission one above it, if submissions/ or a course's file tells which."""
    here = Path.cwd()
    if here.name == SUBMISSIONS:
        return Path("..")
    if next(here.glob("*.cu"), None) is None:
        return Path()
    if here.parent.name == SUBMISSIONS:
        return Path("../..")
    course = next((each for each in here.parents if (each / FILE).is_file()), here)
    return Path(os.path.relpath(course, here))


def describe_choices_of_file(chosen: Mapping[str, object], language: str | None) -> Message | None:
    """Describe the options that a file chose for a command line, if one did: whoever runs the
    command may not have written it. ``language`` is the command line's own."""
    choices = [
        default
        for default in read_defaults(os.environ, Path.cwd()).values()
        if default.origin not in VARIABLES.values()
        if (
            not language
            if default.name == "language"
            else str(chosen.get(default.name)) == default.value
        )
    ]
    if not choices:
        return None
    options = ", ".join(f"--{default.name} {default.value}" for default in choices)
    return phrase("{file} chooses {options}", file=choices[0].origin, options=options)


def _of_file(here: Path) -> dict[str, Default]:
    file = next((each / FILE for each in (here, *here.parents) if (each / FILE).is_file()), None)
    if file is None:
        return {}
    origin = os.path.relpath(file, here)
    if code := next(file.parent.glob("*.cu"), None):
        inside = phrase(
            "lies in a submission, beside {code}; a course's own belongs in a folder above"
        )
        raise _mistake(origin, inside.given(code=one_line(code.name)))
    try:
        entries = msgspec.toml.decode(read(file))
    except (OSError, ValueError, msgspec.DecodeError) as error:
        raise _mistake(origin, phrase("cannot be read: {why}", why=str(error))) from None
    entries.pop("submit", None)  # grade_submit.py reads that
    for name, value in entries.items():
        if name not in VARIABLES:
            unknown = phrase("unknown key; known here: {names}", names=", ".join(VARIABLES))
            unknown = clauses(filter(None, [unknown, did_you_mean(name, VARIABLES)]))
            raise _mistake(f"{origin}: {one_line(name)}", unknown)
        if not isinstance(value, str) or not value:
            wanted = phrase("expected a text, such as {example}", example=f'{name} = "…"')
            raise _mistake(f"{origin}: {name}", wanted)
    folder = file.parent.resolve()
    if not (folder / entries.get("out", "")).resolve().is_relative_to(folder):
        outside = phrase("leads out of the file's own folder; name it by --out or {variable}")
        raise _mistake(f"{origin}: out", outside.given(variable=VARIABLES["out"]))
    return {
        name: Default(name=name, value=_from_here(name, value, file.parent, here), origin=origin)
        for name, value in entries.items()
    }


def _from_here(name: str, value: str, folder: Path, here: Path) -> str:
    """Paths are relative to the file's folder; a lab may also be a name."""
    if name == "language" or (name == "lab" and not (folder / value).is_file()):
        return value
    return os.path.relpath(folder / value, here)


def _mistake(place: str, what: Message) -> UsageError:
    return UsageError.saying("{place}: {what}", place=place, what=what)
