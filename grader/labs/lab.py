"""lab.yaml → ``Lab``: the one place where a lab file is read and checked.

Every mistake in the file becomes a one-line ``LabError`` that names the file, the field
(``performance[1].mnk``), what was expected there and what was found.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
import yaml
from msgspec import Meta

from grader.errors import LabError, one_line
from grader.labs.complaints import explain, show
from grader.language import known_languages
from grader.model import Record, Size
from grader.problems import catalogue
from grader.problems.catalogue import ProblemRef
from grader.problems.problem import Dim, Problem

DEFAULT_LAB = Path(__file__).parent / "sgemm.yaml"
LADDER_LAB = DEFAULT_LAB.with_name("ladder.yaml")

Positive = Annotated[float, Meta(gt=0, le=1e9)]  # the bound keeps infinity out
Identifier = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
Architecture = Annotated[int, Meta(ge=60, le=129)]


class Checkpoint(Record):
    ratio: Positive  # submission's speed / baseline's
    score: Annotated[float, Meta(ge=0)]


class Scoring(Record):
    """How ratios become a score. ``checkpoints`` belong to the policies linear and log."""

    policy: Literal["oj", "linear", "log"] = "oj"
    runs: Annotated[int, Meta(ge=1, le=100)] = 3
    cap: Positive = 100
    checkpoints: tuple[Checkpoint, ...] = ()


class Rules(Record):
    tensor_cores: Literal["forbid", "allow"] = "forbid"
    findings: Literal["warn", "fail"] = "warn"  # what simulator errors do to a GPU grade
    kernels: Literal["any", "one"] = "any"  # how many one call may launch
    libraries: Literal["forbid", "allow"] = "forbid"  # kernels that do the whole task
    # Whether a timed call pays for what only the host does: allocating, freeing, waiting.
    host_calls: Literal["charged", "free"] = "charged"


class Limits(Record):
    """Seconds are CPU time, or wall time on a GPU; meter.py says what is charged.

    ``memory_mb`` applies to each process that runs untrusted work.
    """

    compile_s: Positive = 60
    record_s: Positive = 10  # one call of run_custom
    launch_s: Positive = 10  # one replay on a GPU
    total_s: Positive = 180  # all cases of one submission together
    simulate_s: Positive = 10  # one case in the simulator
    memory_mb: Annotated[int, Meta(ge=256)] = 4096


class Case(Record):
    """One size to run. ``weight`` is its share in the score; 1 for cases without a score."""

    id: str
    size: Size
    weight: float = 1


class Lab(Record):
    """A checked lab. Cases keep the order of the file."""

    id: str
    sha256: str  # of the file's bytes, and of the problem's own file
    problem: Problem
    problem_ref: ProblemRef  # the same, for another process
    correctness: tuple[Case, ...]  # verified on a GPU, untimed
    performance: tuple[Case, ...]  # verified and timed on a GPU
    cpu: tuple[Case, ...]  # run by the simulator
    multiple_of: int  # every dimension is a multiple of it
    architectures: tuple[int, ...]  # first: what the simulator compiles for; 80 means sm_80
    scoring: Scoring
    rules: Rules
    limits: Limits
    language: str | None = None  # of what students read, where they do not choose one


class _Timed(Record):
    """An entry of ``performance`` apart from its size."""

    weight: Positive = 1
    id: Identifier | None = None


class _LabFile(Record):
    """The part of the file that all problems share, before the checks across fields."""

    id: Identifier
    multiple_of: Annotated[int, Meta(ge=1, le=1024)] = 1
    architectures: Annotated[tuple[Architecture, ...], Meta(min_length=1)] = (80,)
    scoring: Scoring = Scoring()
    rules: Rules = Rules()
    limits: Limits = Limits()
    language: str | None = None


def shipped_labs() -> Mapping[str, Path]:
    """The labs that ship with the grader, by name."""
    return {path.stem: path for path in sorted(DEFAULT_LAB.parent.glob("*.yaml"))}


def find_lab(named: str | None) -> Path:
    """The lab file of a command line: a file, or the name of a lab that ships with the grader; by
    default the product of matrices. Raises LabError for a name that is neither."""
    if named is None:
        return DEFAULT_LAB
    shipped = shipped_labs()
    if "/" in named or "." in named or Path(named).exists():
        return Path(named)
    if named not in shipped:
        raise LabError(
            f"{one_line(named)}: no such lab; name a lab file, or one of: {', '.join(shipped)}"
        )
    return shipped[named]


def load_lab(path: Path | None = None) -> Lab:
    """Read and check a lab file; ``None`` means the default lab.

    Raises LabError, one line, for anything wrong with the file.
    """
    path = DEFAULT_LAB if path is None else path
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise LabError(f"{path}: no such lab file; check the path given to --lab") from None
    except OSError as error:
        raise LabError(f"{path}: cannot be read: {error.strerror}") from None
    document = _parse(path, data)
    source = _source(path, document.pop("problem", catalogue.DEFAULT))
    try:
        kind = catalogue.problem_class(source)
    except LabError as error:
        raise LabError(f"{path}: problem: {error}") from None
    shape = _Shape(kind, document)
    try:
        file = msgspec.convert(document, shape.record)
    except msgspec.ValidationError as error:
        raise LabError(f"{path}: {explain(error, document, shape.sections, shape.words)}") from None
    problem = next(_contradictions(file, shape.size_key), None)
    if problem:
        raise LabError(f"{path}: {problem}")
    own = {name: document[name] for name in _fields(kind.Options) if name in document}
    ref = ProblemRef(source=source, options=own)
    digest = hashlib.sha256(data)
    if ref.file is not None:
        digest.update(ref.file.read_bytes())
    return Lab(
        id=file.id,
        sha256=digest.hexdigest(),
        problem=catalogue.load_problem(ref),
        problem_ref=ref,
        correctness=_plain_cases("correctness", file.correctness, kind.dims),
        performance=tuple(
            Case(
                id=entry.id or f"performance-{i}",
                size=_size(getattr(entry, shape.size_key), kind.dims),
                weight=entry.weight,
            )
            for i, entry in enumerate(file.performance)
        ),
        cpu=_plain_cases("cpu", file.cpu, kind.dims),
        multiple_of=file.multiple_of,
        architectures=file.architectures,
        scoring=file.scoring,
        rules=file.rules,
        limits=file.limits,
        language=file.language,
    )


def _source(path: Path, named: object) -> str:
    """The problem as ``ProblemRef.source``: files are named relative to the lab file."""
    if not isinstance(named, str):
        known = ", ".join(map(repr, catalogue.names()))
        raise LabError(f"{path}: problem: expected {known} or 'NAME.py', got {show(named)}")
    return str((path.parent / named).resolve()) if named.endswith(".py") else named


def _plain_cases(kind: str, sizes: tuple[Any, ...], dims: tuple[Dim, ...]) -> tuple[Case, ...]:
    return tuple(Case(id=f"{kind}-{i}", size=_size(size, dims)) for i, size in enumerate(sizes))


def _size(extents: tuple[int, ...] | int, dims: tuple[Dim, ...]) -> Size:
    values = (extents,) if isinstance(extents, int) else extents
    return Size(dims={dim.name: value for dim, value in zip(dims, values, strict=True)})


def _fields(record: type[Record]) -> tuple[str, ...]:
    return record.__struct_fields__


# --- the file's shape, which depends on the problem -------------------------------------------


class _Shape:
    """record: what the document is converted to. sections, words: for ``complaints.explain``.
    size_key: what an entry of ``performance`` calls its size: "size", or the dimensions: "mnk"."""

    def __init__(self, kind: type[Problem], document: Mapping[str, Any]) -> None:
        joined = "".join(dim.name for dim in kind.dims)
        entries = document.get("performance")
        plain = isinstance(entries, list) and any(
            isinstance(entry, dict) and "size" in entry for entry in entries
        )
        self.size_key = "size" if plain else joined
        size = _size_type(kind.dims)
        sizes = Annotated[tuple[size, ...], Meta(min_length=1)]  # type: ignore[valid-type]
        timed = msgspec.defstruct(
            "Performance",
            [(self.size_key, size)],
            bases=(_Timed,),
            kw_only=True,
            frozen=True,
            forbid_unknown_fields=True,
        )
        own = get_type_hints(kind.Options, include_extras=True)
        many = Annotated[tuple[timed, ...], Meta(min_length=1)]  # type: ignore[valid-type]
        self.record: Any = msgspec.defstruct(
            "LabFile",
            [
                *(("correctness", sizes), ("performance", many), ("cpu", sizes)),
                *(
                    (each.name, own[each.name])
                    if each.default is msgspec.NODEFAULT
                    else (each.name, own[each.name], each.default)
                    for each in msgspec.structs.fields(kind.Options)
                ),
            ],
            bases=(_LabFile,),
            kw_only=True,
            frozen=True,
            forbid_unknown_fields=True,
        )
        self.sections: dict[str, Any] = {
            "": self.record,
            "performance[]": timed,
            "scoring": Scoring,
            "scoring.checkpoints[]": Checkpoint,
            "rules": Rules,
            "limits": Limits,
            **{n: t for n, t in own.items() if isinstance(t, type) and issubclass(t, Record)},
        }
        self.words = {**_EXPECTED, **_size_words(kind.dims, self.size_key)}


def _size_type(dims: tuple[Dim, ...]) -> Any:
    extents: Any = tuple(Annotated[int, Meta(ge=1, le=dim.most)] for dim in dims)
    return tuple[extents] if len(dims) > 1 else extents[0]


def _size_words(dims: tuple[Dim, ...], key: str) -> dict[str, str]:
    if len(dims) == 1:
        names, size = dims[0].name, f"an integer from 1 to {dims[0].most}"
    else:
        names = f"[{', '.join(dim.name.upper() for dim in dims)}]"
        mosts = {dim.most for dim in dims}
        most = " and ".join(str(each) for each in sorted(mosts))
        size = f"{len(dims)} integers {names} from 1 to {most}"
    entry = f"{{{key}: {names}, weight: 1}}"
    return {
        "correctness": f"a list of sizes {names}, at least one",
        "correctness[]": size,
        "cpu": f"a list of sizes {names}, at least one",
        "cpu[]": size,
        "performance": f"a list of {entry}, at least one",
        "performance[]": entry,
        f"performance[].{key}": size,
    }


# --- YAML -------------------------------------------------------------------------------------


class _Loader(yaml.SafeLoader):
    """SafeLoader keeps the last of two equal keys; a lab must not lose one silently."""

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


def _parse(path: Path, data: bytes) -> dict[str, Any]:
    try:
        document = yaml.load(data, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise LabError(f"{where}: not valid YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # dates, huge numbers, nesting
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise LabError(f"{path}: not valid YAML: {reason}") from None
    if document is None:
        raise LabError(f"{path}: the file is empty; start from {DEFAULT_LAB}")
    if not isinstance(document, dict):
        raise LabError(f"{path}: expected fields such as 'id: sgemm', got {show(document)}")
    return document


# --- the expected value of each field, in words -----------------------------------------------

_IDENTIFIER = "letters, digits, '-' and '_', at most 64"
_EXPECTED = {
    "id": _IDENTIFIER,
    "performance[].weight": "a number > 0",
    "performance[].id": _IDENTIFIER,
    "language": f"one of {', '.join(known_languages())}",
    "multiple_of": "an integer from 1 to 1024",
    "architectures": "a list of compute capabilities such as [80], at least one",
    "architectures[]": "a compute capability without its dot, such as 80 for sm_80",
    "scoring.runs": "an integer from 1 to 100",
    "scoring.cap": "a number > 0",
    "scoring.checkpoints": "a list of {ratio: 0.5, score: 60}",
    "scoring.checkpoints[].ratio": "a number > 0",
    "scoring.checkpoints[].score": "a number ≥ 0",
    "limits.memory_mb": "an integer ≥ 256 (MiB)",
    **{f"limits.{name}": "a number > 0 (seconds)" for name in Limits.__struct_fields__[:5]},
}


# --- checks across fields ---------------------------------------------------------------------


def _contradictions(file: Any, size_key: str) -> Iterator[str]:
    """Mistakes that no single field shows; each as ``path: what is wrong; remedy``."""
    for kind in ("correctness", "performance", "cpu"):
        yield from _wrong_sizes(kind, file, size_key)
    seen: dict[str, int] = {}
    for i, entry in enumerate(file.performance):
        name = entry.id or f"performance-{i}"
        if re.fullmatch(r"(correctness|cpu)-\d+", name):
            yield f"performance[{i}].id: {name!r} is the id of another case; take another"
        if name in seen:
            yield f"performance[{i}].id: {name!r} is taken by performance[{seen[name]}]"
        seen[name] = i
    yield from _wrong_checkpoints(file.scoring)
    if file.language is not None and file.language not in known_languages():
        yield f"language: expected {' or '.join(known_languages())}, got {file.language!r}"
    if len(set(file.architectures)) < len(file.architectures):
        yield f"architectures: a value appears twice in {list(file.architectures)}"


def _wrong_sizes(kind: str, file: Any, size_key: str) -> Iterator[str]:
    entries: tuple[Any, ...] = getattr(file, kind)
    suffix = f".{size_key}" if kind == "performance" else ""
    seen: dict[Any, int] = {}
    for i, entry in enumerate(entries):
        size = getattr(entry, size_key) if kind == "performance" else entry
        where = f"{kind}[{i}]{suffix}"
        shown = list(size) if isinstance(size, tuple) else size
        if size in seen:
            yield f"{where}: {shown} is already {kind}[{seen[size]}]; remove one"
        extents = size if isinstance(size, tuple) else (size,)
        if any(extent % file.multiple_of for extent in extents):
            yield f"{where}: expected multiples of multiple_of={file.multiple_of}, got {shown}"
        seen[size] = i


def _wrong_checkpoints(scoring: Scoring) -> Iterator[str]:
    if scoring.policy == "oj":
        if scoring.checkpoints:
            yield "scoring.checkpoints: the policy 'oj' has none; remove them or change the policy"
        return
    if len(scoring.checkpoints) < 2:
        yield f"scoring.checkpoints: the policy {scoring.policy!r} needs at least 2"
    for i in range(1, len(scoring.checkpoints)):
        if scoring.checkpoints[i].ratio <= scoring.checkpoints[i - 1].ratio:
            yield f"scoring.checkpoints[{i}].ratio: expected more than checkpoint {i - 1}'s ratio"
