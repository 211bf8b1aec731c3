"""lab.yaml → ``Lab``: the one place where a lab file is read and checked.

Every mistake in the file becomes a one-line ``LabError`` that names the file, the field
(``performance[1].mnk``), what was expected there and what was found.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import yaml
from msgspec import Meta

from grader.errors import LabError
from grader.labs.complaints import explain, show
from grader.model import Record, Size

DEFAULT_LAB = Path(__file__).parent / "sgemm.yaml"
LADDER_LAB = DEFAULT_LAB.with_name("ladder.yaml")
MAX_EXTENT = 65536  # larger sizes fit no device's memory: 65536² floats are 16 GiB

Extent = Annotated[int, Meta(ge=1, le=MAX_EXTENT)]
Extents = tuple[Extent, Extent, Extent]
Positive = Annotated[float, Meta(gt=0, le=1e9)]  # the bound keeps infinity out
Identifier = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
Architecture = Annotated[int, Meta(ge=70, le=129)]


class Layout(Record):
    """How the matrices lie in memory. Only one layout is supported; a lab may state it."""

    A: Literal["row"] = "row"
    B: Literal["col"] = "col"
    C: Literal["col"] = "col"


class Checkpoint(Record):
    ratio: Positive  # submission TFLOPS / baseline TFLOPS
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
    libraries: Literal["forbid", "allow"] = "forbid"  # GEMMs of CUTLASS and cuBLAS; CuTe is allowed
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
    sha256: str  # of the file's bytes
    correctness: tuple[Case, ...]  # verified on a GPU, untimed
    performance: tuple[Case, ...]  # verified and timed on a GPU
    cpu: tuple[Case, ...]  # run by the simulator
    multiple_of: int  # every M, N and K is a multiple of it
    architectures: tuple[int, ...]  # first: what the simulator compiles for; 80 means sm_80
    baseline: Literal["best", "cublas", "cublaslt"]
    layout: Layout
    scoring: Scoring
    rules: Rules
    limits: Limits


class _Performance(Record):
    mnk: Extents
    weight: Positive = 1
    id: Identifier | None = None


class _LabFile(Record):
    """The file's shape, before the checks that look at several fields at once."""

    id: Identifier
    correctness: Annotated[tuple[Extents, ...], Meta(min_length=1)]
    performance: Annotated[tuple[_Performance, ...], Meta(min_length=1)]
    cpu: Annotated[tuple[Extents, ...], Meta(min_length=1)]
    multiple_of: Annotated[int, Meta(ge=1, le=1024)] = 1
    architectures: Annotated[tuple[Architecture, ...], Meta(min_length=1)] = (80,)
    baseline: Literal["best", "cublas", "cublaslt"] = "best"
    layout: Layout = Layout()
    scoring: Scoring = Scoring()
    rules: Rules = Rules()
    limits: Limits = Limits()


def load_lab(path: Path | None = None) -> Lab:
    """Read and check a lab file; ``None`` means the lab that ships with the grader.

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
    try:
        file = msgspec.convert(document, _LabFile)
    except msgspec.ValidationError as error:
        raise LabError(f"{path}: {explain(error, document, _SECTIONS, _EXPECTED)}") from None
    problem = next(_contradictions(file), None)
    if problem:
        raise LabError(f"{path}: {problem}")
    return Lab(
        id=file.id,
        sha256=hashlib.sha256(data).hexdigest(),
        correctness=_plain_cases("correctness", file.correctness),
        performance=tuple(
            Case(id=entry.id or f"performance-{i}", size=_mnk(entry.mnk), weight=entry.weight)
            for i, entry in enumerate(file.performance)
        ),
        cpu=_plain_cases("cpu", file.cpu),
        multiple_of=file.multiple_of,
        architectures=file.architectures,
        baseline=file.baseline,
        layout=file.layout,
        scoring=file.scoring,
        rules=file.rules,
        limits=file.limits,
    )


def _plain_cases(kind: str, sizes: tuple[Extents, ...]) -> tuple[Case, ...]:
    return tuple(Case(id=f"{kind}-{i}", size=_mnk(size)) for i, size in enumerate(sizes))


def _mnk(size: Extents) -> Size:
    return Size.of(m=size[0], n=size[1], k=size[2])


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

_SIZE = f"3 integers [M, N, K] from 1 to {MAX_EXTENT}"
_IDENTIFIER = "letters, digits, '-' and '_', at most 64"
_EXPECTED = {
    "id": _IDENTIFIER,
    "correctness": "a list of sizes [M, N, K], at least one",
    "correctness[]": _SIZE,
    "cpu": "a list of sizes [M, N, K], at least one",
    "cpu[]": _SIZE,
    "performance": "a list of {mnk: [M, N, K], weight: 1}, at least one",
    "performance[]": "{mnk: [M, N, K], weight: 1}",
    "performance[].mnk": _SIZE,
    "performance[].weight": "a number > 0",
    "performance[].id": _IDENTIFIER,
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
_SECTIONS: dict[str, type[Record]] = {
    "": _LabFile,
    "performance[]": _Performance,
    "layout": Layout,
    "scoring": Scoring,
    "scoring.checkpoints[]": Checkpoint,
    "rules": Rules,
    "limits": Limits,
}


# --- checks across fields ---------------------------------------------------------------------


def _contradictions(file: _LabFile) -> Iterator[str]:
    """Mistakes that no single field shows; each as ``path: what is wrong; remedy``."""
    for kind in ("correctness", "performance", "cpu"):
        yield from _wrong_sizes(kind, file)
    seen: dict[str, int] = {}
    for i, entry in enumerate(file.performance):
        name = entry.id or f"performance-{i}"
        if re.fullmatch(r"(correctness|cpu)-\d+", name):
            yield f"performance[{i}].id: {name!r} is the id of another case; take another"
        if name in seen:
            yield f"performance[{i}].id: {name!r} is taken by performance[{seen[name]}]"
        seen[name] = i
    yield from _wrong_checkpoints(file.scoring)
    if len(set(file.architectures)) < len(file.architectures):
        yield f"architectures: a value appears twice in {list(file.architectures)}"


def _wrong_sizes(kind: str, file: _LabFile) -> Iterator[str]:
    entries: tuple[Any, ...] = getattr(file, kind)
    suffix = ".mnk" if kind == "performance" else ""
    seen: dict[Extents, int] = {}
    for i, entry in enumerate(entries):
        size: Extents = entry.mnk if kind == "performance" else entry
        where = f"{kind}[{i}]{suffix}"
        if size in seen:
            yield f"{where}: {list(size)} is already {kind}[{seen[size]}]; remove one"
        if any(extent % file.multiple_of for extent in size):
            yield f"{where}: expected multiples of multiple_of={file.multiple_of}, got {list(size)}"
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
