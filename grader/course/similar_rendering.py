"""Similar pairs and copies of rungs: the terminal's table, and pages with both sources."""

import itertools
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from grader.base import ENGLISH, Language, one_line
from grader.course.similar import ComparedWork, PairSide, SimilarPair
from grader.report import Highlighter, Line, page, table
from ptxsim.plan import Record
from ptxsim.text import Message, phrase

CAUTION = phrase(
    "Similarity is no proof: read both before you judge. It does not say who had it first, and "
    "short kernels have few ways to be written."
)
# What a page of at most 400 KB has room for.
_ROOM = 300_000  # bytes of highlighted lines and rows
_SIDE = 140_000  # bytes of them on one side of a pair
_LINE = 60  # bytes that the page adds to a line
_ROW = 400  # and to a row of its table
_AROUND = 3  # lines


def terminal(
    pairs: Sequence[SimilarPair],
    copies: Sequence[SimilarPair],
    count: int,
    language: Language = ENGLISH,
) -> RenderableType:
    """count: how many submissions were compared."""
    none = phrase("no suspiciously similar pairs among {number}", number=count)
    parts: list[RenderableType] = [Text(language(none))]
    if pairs:
        rows = (
            [
                cell
                for side in (pair.one, pair.other)
                for cell in (Text(one_line(side.student)), _percent(side))
            ]
            for pair in pairs
        )
        header = (language(phrase("submission")), language(phrase("in common")))
        parts = [table(header * 2, rows, words=(0, 2))]
    if copies:
        parts += ["", *(Text(language(_copied(pair))) for pair in copies)]
    caution = Text(language(CAUTION), style="dim")
    return Group(*parts, "", caution) if pairs or copies else parts[0]


def _copied(pair: SimilarPair) -> Message:
    """``bob: 95 % of rung sgemm/25_split_k, which is 90 % of the submission``."""
    return phrase(
        "{student}: {part} of rung {rung}, which is {share} of the submission",
        student=one_line(pair.one.student),
        part=_percent(pair.other),
        rung=pair.other.student,
        share=_percent(pair.one),
    )


def _percent(side: PairSide) -> str:
    return f"{100 * side.share:.0f} %"


class _Shown(Record):
    """A pair on a page, with the sources of both."""

    pair: SimilarPair
    columns: tuple[tuple[PairSide, Mapping[str, tuple[Line, ...]]], ...]


def pages(
    pairs: Sequence[SimilarPair],
    works: Sequence[ComparedWork],
    count: int,
    language: Language = ENGLISH,
    name: str = "similar.html",
) -> dict[str, str]:
    """The pairs, each with both sources side by side, on as many pages as they need: file → text.
    works: of all sides, rungs too. count: how many submissions were compared. name: of the first
    file."""
    files = {work.student: work.files for work in works}
    parts: list[list[_Shown]] = [[]]
    room = _ROOM
    for pair in pairs:
        sides = (pair.one, pair.other)
        columns = tuple((side, _sources(side, files[side.student])) for side in sides)
        room -= _ROW + sum(_size(lines) for _, sources in columns for lines in sources.values())
        if room < 0 and parts[-1]:
            parts.append([])
            room = _ROOM
        parts[-1].append(_Shown(pair=pair, columns=columns))
    stem, dot, suffix = name.rpartition(".")
    names = [name, *(f"{stem}-{number}{dot}{suffix}" for number in range(2, len(parts) + 1))]
    return {
        own: page(
            "similar.html.j2",
            language,
            title=language(phrase("Similar submissions")),
            caution=CAUTION,
            count=count,
            shown=shown,
            own=own,
            names=names,
            percent=_percent,
        )
        for own, shown in zip(names, parts, strict=True)
    }


def _size(lines: Iterable[Line]) -> int:
    return sum(_LINE + len(line.html.encode()) for line in lines)


def _sources(side: PairSide, files: Mapping[str, str]) -> dict[str, tuple[Line, ...]]:
    """Every file with its shared lines marked; of long sources those and a few around them, as many
    as there is room for."""
    highlighter = Highlighter(files)
    marked: dict[str, set[int]] = {name: set() for name in files}
    for passage in side.passages:
        marked[passage.file].update(range(passage.first, passage.last + 1))
    sources = {name: highlighter.marked(name, lines) for name, lines in marked.items()}
    if sum(map(_size, sources.values())) <= _SIDE:
        return sources
    room = _SIDE
    for name, lines in sources.items():
        near = {n + i for n in marked[name] for i in range(-_AROUND, _AROUND + 1)}
        around = [line for line in lines if line.number in near]
        ends = itertools.accumulate(_size([line]) for line in around)
        sources[name] = tuple(line for line, end in zip(around, ends, strict=True) if end <= room)
        room -= _size(sources[name])
    return sources
