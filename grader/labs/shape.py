"""A lab file's shape, which depends on its problem: the record that it is converted to, and the
words for what belongs in each field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import Meta

from grader.labs import groups, rubric, scoring_rules, time_rules
from grader.labs.complaints import IDENTIFIER
from grader.labs.fields import LabFile, Limits, Rules, Timed
from grader.language import known_languages
from grader.model import Message, Record, enumerated, phrase, verbatim
from grader.problems.problem import Dim, Problem

_EXPECTED = {
    **scoring_rules.WORDS,
    **groups.WORDS,
    **time_rules.WORDS,
    **rubric.WORDS,
    "id": IDENTIFIER,
    "performance[].weight": phrase("a number > 0"),
    "performance[].id": IDENTIFIER,
    "language": phrase("one of {names}", names=", ".join(known_languages())),
    "multiple_of": phrase("an integer from 1 to {most}", most=1024),
    "architectures": phrase(
        "a list of compute capabilities such as [80] or [90a, 80], at least one"
    ),
    "architectures[]": phrase("a compute capability without its dot, such as 80 for sm_80, or 90a"),
    "limits.memory_mb": phrase("an integer ≥ 256 (MiB)"),
    **{f"limits.{name}": phrase("a number > 0 (seconds)") for name in Limits.__struct_fields__[:5]},
}


class Shape:
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
            bases=(Timed,),
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
            bases=(LabFile,),
            kw_only=True,
            frozen=True,
            forbid_unknown_fields=True,
        )
        self.sections: dict[str, Any] = {
            "": self.record,
            "performance[]": timed,
            **scoring_rules.SECTIONS,
            **groups.SECTIONS,
            **time_rules.SECTIONS,
            **rubric.SECTIONS,
            "rules": Rules,
            "limits": Limits,
            **{n: t for n, t in own.items() if isinstance(t, type) and issubclass(t, Record)},
        }
        self.words = {**_EXPECTED, **_size_words(kind.dims, self.size_key)}


def _size_type(dims: tuple[Dim, ...]) -> Any:
    extents: Any = tuple(Annotated[int, Meta(ge=1, le=dim.most)] for dim in dims)
    return tuple[extents] if len(dims) > 1 else extents[0]


def _size_words(dims: tuple[Dim, ...], key: str) -> dict[str, Message]:
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
    sizes = phrase("a list of sizes {names}, at least one", names=names)
    return {
        "correctness": sizes,
        "correctness[]": size,
        "cpu": sizes,
        "cpu[]": size,
        "performance": phrase("a list of {example}, at least one", example=entry),
        "performance[]": verbatim(entry),
        f"performance[].{key}": size,
    }
