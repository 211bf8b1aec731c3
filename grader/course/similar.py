"""Pairs of submissions that share more code than chance and the lab explain.

copydetect tokenises (Pygments) and fingerprints: names, comments and white space do not count, and
every run of 25 remaining characters is searched for anywhere in the other submission, so moved code
is found too. The result does not say who copied from whom, or that anybody did.
"""

import bisect
import io
import itertools
import signal
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from grader.base import MachineError, one_line
from grader.report import Highlighter, Line, page, table
from ptxsim.plan import Record

RUN = 25  # characters of tokenised code that must be equal to count as shared
TOO_LONG = "not compared: it takes too long; read it yourself"
_LONGEST = 1 << 18  # characters of a submission
_CPU_SECONDS = 10.0  # for its tokens
LEAST = 250  # shared characters; below this, all short kernels are alike
_COMMON = 10  # code in more submissions than this (or a fifth of the class) is an idiom
_FIRST = "//\n"
_IN_ALL_NAME = "sgemm.cu"  # tells copydetect the language


class ComparedWork(Record):
    """One submission's sources."""

    student: str
    files: Mapping[str, str]  # name → text


class Passage(Record):
    """Lines that the other submission has too."""

    file: str
    first: int
    last: int


class PairSide(Record):
    """One of the two submissions of a pair."""

    student: str
    share: float  # of its own code, 0 … 1, that the other has too
    passages: tuple[Passage, ...]


class SimilarPair(Record):
    one: PairSide
    other: PairSide
    characters: int  # of tokenised code that both have

    @property
    def share(self) -> float:
        """The larger of the two shares: a copy may hide among other code."""
        return max(self.one.share, self.other.share)


def comparable(works: Sequence[ComparedWork]) -> tuple[list[ComparedWork], list[str]]:
    """The works that can be compared in reasonable time, and the students of the others.

    The tokeniser takes minutes for some short texts, and a student may know one. Runs in the main
    thread only. Raises MachineError when copydetect is not installed.
    """
    fingerprint, _ = _copydetect()
    short = [work for work in works if _ends_in_time(fingerprint, _Document(work).text)]
    compared = {work.student for work in short}
    return short, [work.student for work in works if work.student not in compared]


def _ends_in_time(fingerprint: Any, text: str) -> bool:
    if len(text) > _LONGEST:
        return False
    before = signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, _CPU_SECONDS)
    try:
        fingerprint(text, ())
    except TimeoutError:
        return False
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return True


def _too_long(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError


def find_pairs(
    groups: Sequence[Sequence[ComparedWork]], known: Iterable[str], threshold: float = 0.6
) -> tuple[SimilarPair, ...]:
    """Pairs within each group, with a share of at least ``threshold``, the most similar first.
    known: code that all students were given, which does not count. Raises MachineError."""
    fingerprint, compare = _copydetect()
    groups = [works for works in groups if len(works) > 1]
    given = {value for text in known for value in fingerprint(text, ()).hashes} if groups else set()
    pairs = []
    for works in groups:
        documents = [_Document(work) for work in works]
        first = [fingerprint(document.text, ()) for document in documents]
        counts = Counter(itertools.chain.from_iterable(found.hashes for found in first))
        limit = max(_COMMON, len(first) / 5)
        idioms = {value for value, count in counts.items() if count > limit}
        # Remove the given code before the second pass: shares refer to the rest.
        left_out = sorted(given | idioms)
        prints = [(each, fingerprint(each.text, left_out)) for each in documents]
        pairs += [
            pair
            for (a, one), (b, other) in itertools.combinations(prints, 2)
            if (pair := _pair(a, b, compare(one, other))) is not None
            and pair.share >= threshold
            and pair.characters >= LEAST
        ]
    return tuple(sorted(pairs, key=lambda pair: (-pair.share, -pair.characters)))


def _copydetect() -> tuple[Any, Any]:
    """(text, hashes left out) → fingerprint, and the comparison of two of them."""
    try:
        from copydetect import CodeFingerprint, compare_files
    except ImportError:
        raise MachineError(
            "grade similar needs copydetect: pip install 'sgemm-grader[similar]'"
        ) from None

    def fingerprint(text: str, left_out: Sequence[int]) -> Any:
        # A window of 1 keeps every fingerprint, so that the answer does not depend on the seed of
        # Python's hashes.
        return CodeFingerprint(_IN_ALL_NAME, RUN, 1, boilerplate=left_out, fp=io.StringIO(text))

    return fingerprint, compare_files


class _Document:
    """A submission's files as one text, and where each line of it came from."""

    def __init__(self, work: ComparedWork) -> None:
        self.student = work.student
        # Pygments drops empty lines at the very beginning: a comment there keeps all in place.
        self.text = _FIRST + "".join(f"{text}\n" for text in work.files.values())
        self._starts: list[int] = []  # of lines, in characters
        self._places: list[tuple[str, int]] = []  # file and line
        position = len(_FIRST)
        for name, text in work.files.items():
            for number, line in enumerate(f"{text}\n".split("\n")[:-1], 1):
                self._starts.append(position)
                self._places.append((name, number))
                position += len(line) + 1

    def passages(self, slices: Any) -> Iterator[Passage]:
        """The lines of [start, end) ranges of characters, given as two rows of numbers."""
        for start, end in zip(*slices, strict=True):
            first, last = self._line(int(start)), self._line(int(end) - 1)
            for name, group in itertools.groupby(
                self._places[first : last + 1], key=lambda place: place[0]
            ):
                numbers = [number for _, number in group]
                yield Passage(file=name, first=numbers[0], last=numbers[-1])

    def _line(self, position: int) -> int:
        return max(0, bisect.bisect_right(self._starts, position) - 1)


def _pair(one: _Document, other: _Document, compared: Any) -> SimilarPair | None:
    characters, shares, slices = compared
    if not characters:
        return None
    left, right = (
        PairSide(
            student=document.student,
            share=min(1.0, float(share)),
            passages=tuple(document.passages(ranges)),
        )
        for document, share, ranges in zip((one, other), shares, slices, strict=True)
    )
    return SimilarPair(one=left, other=right, characters=int(characters))


# --- table and page ----------------------------------------------------------------------------

CAUTION = (
    "Similarity is no proof: read both before you judge. It does not say who had it first, and "
    "short kernels have few ways to be written."
)
# What a page of at most 400 KB has room for; the terminal lists every pair.
_LISTED = 300
_SOURCES = 300_000  # bytes of highlighted lines
_LINE = 60  # bytes that the page adds to a line


def terminal(pairs: Sequence[SimilarPair], count: int) -> RenderableType:
    """count: how many submissions were compared."""
    if not pairs:
        return Text(f"no suspiciously similar pairs among {count}")
    rows = (
        [
            cell
            for side in (pair.one, pair.other)
            for cell in (Text(one_line(side.student)), _percent(side))
        ]
        for pair in pairs
    )
    shown = table(("submission", "shared") * 2, rows, words=(0, 2), whole=range(4))
    return Group(shown, "", Text(CAUTION, style="dim"))


def _percent(side: PairSide) -> str:
    return f"{100 * side.share:.0f} %"


def html(pairs: Sequence[SimilarPair], works: Sequence[ComparedWork]) -> str:
    """The pairs, each with both sources side by side."""
    files = {work.student: work.files for work in works}
    shown = []
    room = _SOURCES
    for pair in pairs[:_LISTED]:
        columns = [(side, _sources(side, files[side.student])) for side in (pair.one, pair.other)]
        texts = (lines for _, sources in columns for lines in sources.values())
        room -= sum(_LINE + len(line.html.encode()) for lines in texts for line in lines)
        if room < 0:
            break
        shown.append(columns)
    return page(
        "similar.html.j2",
        title="Similar submissions",
        caution=CAUTION,
        count=len(works),
        pairs=pairs[:_LISTED],
        unlisted=len(pairs[_LISTED:]),
        shown=shown,
        percent=_percent,
    )


def _sources(side: PairSide, files: Mapping[str, str]) -> dict[str, tuple[Line, ...]]:
    """Mark the shared lines of every file; () of one that is too long to show."""
    highlighter = Highlighter(files)
    marked: dict[str, set[int]] = {name: set() for name in files}
    for passage in side.passages:
        marked[passage.file].update(range(passage.first, passage.last + 1))
    return {name: highlighter.marked(name, lines) for name, lines in marked.items()}
