"""Problems by name, or from a course's own file.

A problem of its own is Python that the grader runs with its own rights, in its own processes: write
it, or read it, as you would the grader's source. It is the instructor's, never a student's.
"""

import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from grader.base import LabError, convert
from grader.problems.problem import Problem
from ptxsim.plan import Record
from ptxsim.text import phrase

DEFAULT = "gemm"
_SHIPPED = {  # by name, which is that of its folder: the module
    path.stem: f"{__package__}.{path.stem}.{path.stem}"
    for path in sorted(Path(__file__).parent.glob("*/*.py"))
    if path.stem == path.parent.name
}


class ProblemRef(Record):
    """A problem as it travels to another process."""

    source: str  # a name of _SHIPPED, or the absolute path of a Python file
    options: dict[str, Any]  # as in the lab file

    @property
    def file(self) -> Path | None:
        return Path(self.source) if self.source.endswith(".py") else None


def names() -> tuple[str, ...]:
    """Return the names of the problems that ship with the grader."""
    return tuple(_SHIPPED)


def problem_class(source: str) -> type[Problem]:
    """The problem of this name, or the only one in this file. Raises LabError."""
    if source in _SHIPPED:
        return _only(importlib.import_module(_SHIPPED[source]), source)
    if not source.endswith(".py"):
        none = phrase("there is no problem {name}: it is {known}, or a file 'NAME.py'")
        raise LabError(none.given(name=repr(source), known=", ".join(map(repr, names()))))
    return _only(_loaded(Path(source)), source)


def load_problem(ref: ProblemRef) -> Problem:
    """Raises LabError, and msgspec.ValidationError for options that do not fit."""
    kind = problem_class(ref.source)
    return kind(convert(ref.options, kind.Options))


def _loaded(path: Path) -> ModuleType:
    """The file as a module, run once for each content."""
    try:
        content = path.read_bytes()
    except OSError as error:
        why = error.strerror or str(error)
        raise LabError.saying("{file}: cannot be read: {why}", file=str(path), why=why) from None
    name = f"grader_problem_{hashlib.sha256(str(path).encode() + content).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise mistake(path, error) from None
    return module


def mistake(path: Path, error: BaseException) -> LabError:
    """Name the file, and the last of its lines that the error passed through."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    place = f"{path}:{line}" if line else str(path)
    return LabError(f"{place}: {type(error).__name__}: {error}")


def _only(module: ModuleType, source: str) -> type[Problem]:
    kinds = (each for each in vars(module).values() if isinstance(each, type))
    kinds = (each for each in kinds if each.__module__ == module.__name__)
    own = [each for each in kinds if issubclass(each, Problem)]
    found = [each for each in own if not each.__abstractmethods__] or own
    if len(found) != 1:
        one = phrase("{file}: expected one class that derives from Problem, got {count}")
        raise LabError(one.given(file=source, count=len(found)))
    absent = (name for name in Problem.__annotations__ if not hasattr(found[0], name))
    if lacks := ", ".join(sorted({*found[0].__abstractmethods__, *absent})):
        words = phrase("{file}: {name} lacks {methods}", file=source, methods=lacks)
        raise LabError(words.given(name=found[0].__name__))
    return found[0]
