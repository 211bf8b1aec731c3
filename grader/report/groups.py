"""Groups of sizes in words, and sources, highlighted."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from markupsafe import Markup

from grader.base import Finding, Verdict, kind_words
from grader.report.drawing import coloured
from grader.report.formatting import SENTENCES, VERDICT_WORDS, clean
from grader.results import Result, SizeGroup
from ptxsim.findings import CONTEXT, LineCount
from ptxsim.plan import Record
from ptxsim.text import Message, counted, listed, phrase

# --- size groups -------------------------------------------------------------------------------

_say = SENTENCES.say


def right_of(group: SizeGroup) -> Message:
    """``all 3 right``, ``2 of 3 right: wrong answer, out-of-bounds``."""
    if group.verdict is None:
        return phrase("not run")
    if group.verdict is Verdict.AC:
        return counted("the one is right", "all {count} right", group.sizes)
    kinds = listed((VERDICT_WORDS[group.verdict], *map(kind_words, group.mistakes)))
    return phrase(
        "{right} of {sizes} right: {kinds}", right=group.right, sizes=group.sizes, kinds=kinds
    )


def group_sentences(result: Result) -> tuple[Message, ...]:
    """One for each group; () for a lab without hidden sizes."""
    return tuple(group_sentence(group, result) for group in result.groups)


def group_sentence(group: SizeGroup, result: Result) -> Message:
    name = _say(f"group.{group.name}")
    if not group.sizes:
        return _say("group.ungraded", name=name)
    words, share = "group.right", 100 * group.weight / sum(each.weight for each in result.groups)
    if all(each.sizes for each in result.groups):
        words = "group.share" if group.points is None else "group.points"
    said = _say(words, name=name, right=right_of(group), share=share)
    return said if group.points is None else said.given(points=group.points)


# --- source ------------------------------------------------------------------------------------

_MAX_LISTING = 30_000  # characters; highlighting makes them about six times as many
_MAX_LINE = 240  # characters shown of one line


class Line(Record):
    number: int
    html: Markup
    marked: bool  # a finding points here
    share: float  # of all warp instructions of the run, 0 … 1


class Listing(Record):
    """A complete file."""

    name: str
    lines: tuple[Line, ...]
    counted: bool  # false: there are no counts, so the shares mean nothing


class Highlighter:
    """Highlights each file once, however many excerpts are taken from it."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self._texts: dict[str, list[Markup]] = {}

    def excerpt(self, name: str | None, marked: Collection[int]) -> tuple[Line, ...]:
        """The marked lines of a file and a few around them; () when they are unknown."""
        if not marked or name is None or name not in self._sources:
            return ()
        count, first = len(self._highlighted(name)), min(marked)
        if max(marked) > count or first < 1:
            return ()
        last = min(count, max(marked) + CONTEXT)
        return self._lines(name, marked, range(max(1, first - CONTEXT), last + 1))

    def marked(self, name: str, lines: Collection[int]) -> tuple[Line, ...]:
        """A whole file with these lines marked."""
        return self._lines(name, lines)

    def listings(
        self, findings: Sequence[Finding], counts: Sequence[LineCount]
    ) -> tuple[Listing, ...]:
        """The files that fit on a page; if not all fit, the shortest."""
        total = sum(count.instructions for count in counts) or 1
        room, listings = _MAX_LISTING, []
        for name, text in sorted(self._sources.items(), key=lambda item: len(item[1])):
            room -= len(text)
            if room < 0:
                break
            marked = {finding.line for finding in findings if finding.file == name}
            done = {each.line: each.instructions / total for each in counts if each.file == name}
            lines = self._lines(name, marked, shares=done)
            counted = any(line.share for line in lines)
            listings.append(Listing(name=name, lines=lines, counted=counted))
        return tuple(sorted(listings, key=lambda listing: (not listing.counted, listing.name)))

    def _lines(
        self,
        name: str,
        marked: Collection[int | None],
        numbers: Iterable[int] | None = None,
        shares: Mapping[int, float] | None = None,
    ) -> tuple[Line, ...]:
        """numbers: of the lines; None for all."""
        html, shares = self._highlighted(name), shares or {}
        return tuple(
            Line(number=n, html=html[n - 1], marked=n in marked, share=shares.get(n, 0))
            for n in numbers or range(1, len(html) + 1)
        )

    def _highlighted(self, name: str) -> list[Markup]:
        if name not in self._texts:
            # clean() comes first, so that the highlighted text can be marked as safe.
            lines = clean(self._sources[name]).expandtabs(4).split("\n")
            self._texts[name] = coloured("\n".join(line[:_MAX_LINE] for line in lines))
        return self._texts[name]
