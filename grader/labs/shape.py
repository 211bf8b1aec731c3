"""A lab file's shape, which depends on its problem, and mistakes that no single field shows."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import Meta

from grader.base import gpus, known_languages
from grader.labs import course_rules, groups, scoring_rules
from grader.labs.course_rules import Rubric, Switch, TimeRules
from grader.labs.groups import Groups
from grader.labs.scoring_rules import Positive, Scoring
from grader.labs.yaml_file import at, either, say, show_size, wanted, wrong
from grader.problems import Dim, Problem
from ptxsim.plan import Record
from ptxsim.text import Message, enumerated, phrase, verbatim

SWITCHES = ("advice", "rungs", "answers")  # fields of ``LabSettings``
Identifier = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
Topic = Literal["introduction", "memory", "patterns", "products", "tensor-cores"]
TOPICS: Mapping[Topic, Message] = {  # in the order of a course
    "introduction": phrase("introduction"),
    "memory": phrase("memory"),
    "patterns": phrase("patterns"),
    "products": phrase("products of matrices"),
    "tensor-cores": phrase("tensor cores"),
}
# 80, or 90a: with the instructions that no later GPU has
_Suffixed = Annotated[str, Meta(pattern=r"^(9[0-9]|1[0-2][0-9])[af]$")]
Architecture = Annotated[int, Meta(ge=60, le=129)] | _Suffixed


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


class Timed(Record):
    """An entry of ``performance`` apart from its size."""

    weight: Positive = 1
    id: Identifier | None = None


class LabSettings(Record):
    """The fields of a lab file that a lab has as they are."""

    id: Identifier
    topic: Topic | None = None  # where ``grade labs`` lists it
    multiple_of: Annotated[int, Meta(ge=1, le=65536)] = 1  # every dimension is a multiple of it
    scoring: Scoring = Scoring()
    time: TimeRules | None = None
    rules: Rules = Rules()
    limits: Limits = Limits()
    language: str | None = None  # of what students read, where they do not choose one
    rubric: Rubric | None = None
    # Help that students are shown of a right kernel's speed:
    advice: Switch = "show"  # the model's ideas
    rungs: Switch = "show"  # of the reference ladder
    answers: Switch = "show"  # to the problem's questions, with the kernel's own figures


class LabFile(LabSettings):
    """The part of the file that all problems share, before the checks across fields."""

    extends: None = None  # taken out before, as is the problem
    problem: None = None
    architectures: Annotated[tuple[Architecture, ...], Meta(min_length=1)] = (80,)
    groups: Groups | None = None


# --- shape -------------------------------------------------------------------------------------

_CHECKED: dict[str, Any] = {"kw_only": True, "frozen": True, "forbid_unknown_fields": True}


class Shape:
    """record: what the document is converted to. words: for ``explain``. size_key: what
    an entry of ``performance`` calls its size: "size", or the dimensions: "mnk"."""

    def __init__(self, kind: type[Problem], document: Mapping[str, Any]) -> None:
        joined = "".join(dim.name for dim in kind.dims)
        entries = document.get("performance")
        plain = isinstance(entries, list) and any(
            isinstance(entry, dict) and "size" in entry for entry in entries
        )
        self.size_key = "size" if plain else joined
        extents: Any = tuple(Annotated[int, Meta(ge=1, le=dim.most)] for dim in kind.dims)
        size: Any = tuple[extents] if len(extents) > 1 else extents[0]
        entry: list[Any] = [(self.size_key, size)]
        if kind.kinds:
            entry.append(("inputs", Literal[kind.kinds] | None, None))
            size = size | msgspec.defstruct("Sized", entry, **_CHECKED)
        sizes = Annotated[tuple[size, ...], Meta(min_length=1)]
        timed = msgspec.defstruct("Performance", entry, bases=(Timed,), **_CHECKED)
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
            bases=(LabFile,),
            **_CHECKED,
        )
        self.words = _size_words(kind.dims, self.size_key, kind.kinds)

    def sized(self, entry: Any) -> tuple[tuple[int, ...] | int, str]:
        """The extents of a size, as the file has them, and the word for its inputs."""
        if isinstance(entry, tuple | int):
            return entry, ""
        return getattr(entry, self.size_key), getattr(entry, "inputs", None) or ""


def _size_words(dims: tuple[Dim, ...], key: str, kinds: Sequence[str]) -> dict[str, Message]:
    if len(dims) == 1:
        names, size = dims[0].name, phrase("an integer from 1 to {most}", most=dims[0].most)
    else:
        names = f"[{', '.join(dim.name.upper() for dim in dims)}]"
        mosts = sorted({dim.most for dim in dims})
        size = phrase(
            "{number} integers {names} from 1 to {most}",
            number=len(dims),
            names=names,
            most=enumerated(verbatim(str(each)) for each in mosts),
        )
    entry = f"{{{key}: {names}, weight: 1}}"
    plain = size
    if kinds:
        other = phrase("{size}, or {example} with inputs of {kinds}", size=size)
        example = f"{{{key}: {names}, inputs: {kinds[0]}}}"
        size = other.given(example=example, kinds=enumerated(map(verbatim, kinds)))
    sizes = phrase("a list of sizes {names}, at least one", names=names)
    return {
        "LabFile.correctness": sizes,
        "LabFile.correctness[]": size,
        "LabFile.cpu": sizes,
        "LabFile.cpu[]": size,
        "LabFile.performance": phrase("a list of {example}, at least one", example=entry),
        "LabFile.performance[]": verbatim(entry),
        f"Performance.{key}": plain,
        f"Sized.{key}": plain,
        "LabFile.language": phrase("one of {names}", names=", ".join(known_languages())),
    }


# --- contradictions ----------------------------------------------------------------------------


def contradictions(file: Any, shape: Shape, problem: type[Problem]) -> Iterator[Message]:
    """Mistakes that no single field shows; each as ``path: what is wrong; remedy``."""
    sizes = [getattr(entry, shape.size_key) for entry in file.performance]
    yield from _wrong_sizes("correctness", file.correctness, "", shape, file.multiple_of)
    yield from _wrong_sizes(
        "performance", file.performance, f".{shape.size_key}", shape, file.multiple_of
    )
    yield from _wrong_sizes("cpu", file.cpu, "", shape, file.multiple_of)
    seen: dict[str, int] = {}
    for i, entry in enumerate(file.performance):
        name, field = entry.id or f"performance-{i}", f"performance[{i}].id"
        if re.fullmatch(r"(correctness|cpu)-\d+|hidden-.*", name):
            yield wrong(field, "sizes.other-id", name=repr(name))
        if name in seen:
            first = f"performance[{seen[name]}]"
            yield wrong(field, "sizes.taken", name=repr(name), other=first)
        seen[name] = i
    capability = gpus.capability_of(f"sm_{file.architectures[0]}")
    hidden = file.groups is not None
    yield from scoring_rules.contradictions(file.scoring, sizes, capability, hidden=hidden)
    if file.groups is not None:
        yield from groups.contradictions(file.groups, problem, file.multiple_of)
    for name in SWITCHES:
        if getattr(file, name) == "after-due" and not (file.time and file.time.due):
            yield wrong(name, "time.no-due")
    yield from common_contradictions(file)


def common_contradictions(file: Any) -> Iterator[Message]:
    """Mistakes in fields that labs of every kind have."""
    if file.time is not None:
        yield from course_rules.wrong_times(file.time)
    if file.rubric is not None:
        yield from course_rules.wrong_rubric(file.rubric, "rubric.")
    if file.language is not None and file.language not in known_languages():
        yield at("language", wanted(either(known_languages()), repr(file.language)))
    if len(set(file.architectures)) < len(file.architectures):
        yield wrong("architectures", "sizes.twice", values=str(list(file.architectures)))


def _wrong_sizes(
    kind: str, entries: Sequence[Any], suffix: str, shape: Shape, multiple_of: int
) -> Iterator[Message]:
    """suffix: of a size's field within its entry."""
    seen: dict[Any, int] = {}
    for i, (size, inputs) in enumerate(map(shape.sized, entries)):
        where, shown = f"{kind}[{i}]{suffix}", ", ".join(filter(None, (show_size(size), inputs)))
        if (size, inputs) in seen:
            yield wrong(where, "sizes.already", size=shown, other=f"{kind}[{seen[size, inputs]}]")
        extents = size if isinstance(size, tuple) else (size,)
        if any(extent % multiple_of for extent in extents):
            yield at(where, wanted(say("sizes.multiples", step=multiple_of), shown))
        seen[size, inputs] = i
