"""Pairs of submissions that share more code than chance and the lab explain, and copies of rungs.

copydetect's tokeniser (Pygments) leaves out names, comments and white space. Every run of 25
remaining characters is searched for anywhere in the other submission, so moved code is found too.
A run that stands in a text several times counts once: macros that are expanded would else weigh as
much as they are used. The result does not say who copied from whom, or that anybody did.
"""

import bisect
import itertools
import signal
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import FrameType

from grader.base import MachineError
from grader.labs import SourceLine
from ptxsim.plan import Record
from ptxsim.text import phrase

RUN = 25  # characters of tokenised code that must be equal to count as shared
TOO_LONG = phrase("{student}: not compared: it takes too long; read it yourself")
_LONGEST = 1 << 18  # characters of a submission
_CPU_SECONDS = 10.0  # for its tokens
LEAST = 250  # shared characters; below this, all short kernels are alike
_SHORT = 1000  # characters shared with a rung
_WHOLE = 0.9  # share of a short rung
_COMMON = 10  # code in more submissions than this (or a fifth of the class) is an idiom
_FIRST = "//\n"
_IN_ALL_NAME = "sgemm.cu"  # tells copydetect the language

# Text → tokenised code, and rows of (place in it, characters left out before).
Tokenise = Callable[[str], tuple[str, Sequence[Sequence[int]]]]
Runs = dict[int, list[int]]  # hash of a run → where it begins in the tokenised code


class ComparedWork(Record):
    """One submission's sources, or a rung's."""

    student: str
    files: Mapping[str, str]  # name → text
    lines: tuple[SourceLine, ...] = ()  # with macros expanded; () as the files have them


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
    tokenise = _tokeniser()
    short = [work for work in works if _ends_in_time(tokenise, _Document(work).text)]
    compared = {work.student for work in short}
    return short, [work.student for work in works if work.student not in compared]


def _ends_in_time(tokenise: Tokenise, text: str) -> bool:
    if len(text) > _LONGEST:
        return False
    before = signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, _CPU_SECONDS)
    try:
        tokenise(text)
    except TimeoutError:
        return False
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return True


def _too_long(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError


def find_pairs(
    groups: Sequence[Sequence[ComparedWork]],
    known: Iterable[ComparedWork],
    threshold: float = 0.6,
) -> tuple[SimilarPair, ...]:
    """Pairs within each group, with a share of at least ``threshold``, the most similar first.
    known: code that all students were given, rungs too, which does not count. Raises
    MachineError."""
    tokenise = _tokeniser()
    groups = [works for works in groups if len(works) > 1]
    given = _runs_of(tokenise, known) if groups else set()
    pairs = []
    for works in groups:
        prints = [_Print(work, tokenise) for work in works]
        counts = Counter(run for each in prints for run in each.runs)
        limit = max(_COMMON, len(prints) / 5)
        idioms = {run for run, count in counts.items() if count > limit}
        for each in prints:
            each.leave_out(given | idioms)
        found = (_pair(one, other) for one, other in itertools.combinations(prints, 2))
        pairs += [pair for pair in found if pair and _counts(pair, threshold)]
    return tuple(sorted(pairs, key=lambda pair: (-pair.share, -pair.characters)))


def find_copies(
    works: Sequence[ComparedWork],
    rungs: Sequence[ComparedWork],
    starters: Iterable[ComparedWork],
    threshold: float = 0.6,
) -> tuple[SimilarPair, ...]:
    """For each work the rung that it has most of, if that is at least ``threshold`` of either; a
    short rung must be nearly whole, for others write it alike. What the starters have does not
    count. Raises MachineError."""
    tokenise = _tokeniser()
    given = _runs_of(tokenise, starters)
    ladder = [_Print(rung, tokenise) for rung in rungs]
    for rung in ladder:
        rung.leave_out(given)
    copies = []
    for work in works:
        own = _Print(work, tokenise)
        own.leave_out(given)
        found = (pair for rung in ladder if (pair := _pair(own, rung)))
        alike = [
            pair
            for pair in found
            if _counts(pair, threshold if pair.characters >= _SHORT else max(threshold, _WHOLE))
        ]
        copies += sorted(alike, key=lambda pair: (-pair.characters, -pair.other.share))[:1]
    return tuple(copies)


def _counts(pair: SimilarPair, threshold: float) -> bool:
    return pair.share >= threshold and pair.characters >= LEAST


def _tokeniser() -> Tokenise:
    try:
        from copydetect.utils import filter_code
    except ImportError:
        lacks = phrase("grade similar needs copydetect: pip install 'sgemm-grader[similar]'")
        raise MachineError(lacks) from None

    def tokenise(text: str) -> tuple[str, Sequence[Sequence[int]]]:
        code, left_out = filter_code(text, _IN_ALL_NAME)
        return code, left_out.tolist()

    return tokenise


def _runs_of(tokenise: Tokenise, works: Iterable[ComparedWork]) -> set[int]:
    return {run for work in works for run in _Print(work, tokenise).runs}


class _Document:
    """A submission's files as one text, and where each line of it came from."""

    def __init__(self, work: ComparedWork) -> None:
        lines = work.lines or [
            SourceLine(file=name, number=number, text=line)
            for name, text in work.files.items()
            for number, line in enumerate(text.split("\n"), 1)
        ]
        # Pygments drops empty lines at the very beginning: a comment there keeps all in place.
        self.text = _FIRST + "".join(f"{line.text}\n" for line in lines)
        self._places = [(line.file, line.number) for line in lines]
        lengths = (len(line.text) + 1 for line in lines)
        self._starts = list(itertools.accumulate(lengths, initial=len(_FIRST)))[:-1]

    def passages(self, ranges: Iterable[tuple[int, int]]) -> Iterator[Passage]:
        """The lines of [start, end) ranges of characters."""
        for start, end in ranges:
            first, last = self._line(start), self._line(end - 1)
            places = self._places[first : last + 1]
            for name, group in itertools.groupby(places, key=lambda place: place[0]):
                numbers = [number for _, number in group]
                yield Passage(file=name, first=min(numbers), last=max(numbers))

    def _line(self, position: int) -> int:
        return max(0, bisect.bisect_right(self._starts, position) - 1)


class _Print:
    """The runs of a work's tokenised code."""

    def __init__(self, work: ComparedWork, tokenise: Tokenise) -> None:
        self.student = work.student
        self._document = _Document(work)
        code, left_out = tokenise(self._document.text)
        self._shifts = [(place, shift) for place, shift in left_out]
        self.runs: Runs = {}
        for place in range(len(code) - RUN + 1):
            self.runs.setdefault(hash(code[place : place + RUN]), []).append(place)
        self._own = self.characters(self.runs)

    def leave_out(self, runs: Collection[int]) -> None:
        """Shares refer to the rest."""
        self.runs = {run: places for run, places in self.runs.items() if run not in runs}
        self._own = self.characters(self.runs)

    def characters(self, runs: Iterable[int]) -> int:
        """How many characters these runs cover where they stand first."""
        ranges = _joined(self.runs[run][0] for run in runs)
        return sum(end - start for start, end in ranges)

    def side(self, shared: Collection[int]) -> PairSide:
        ranges = _joined(place for run in shared for place in self.runs[run])
        places = ((self._in_text(start), self._in_text(end)) for start, end in ranges)
        return PairSide(
            student=self.student,
            share=self.characters(shared) / self._own,
            passages=tuple(self._document.passages(places)),
        )

    def _in_text(self, place: int) -> int:
        index = bisect.bisect_left(self._shifts, (place,))
        return place + self._shifts[min(index, len(self._shifts) - 1)][1]


def _joined(places: Iterable[int]) -> list[tuple[int, int]]:
    """The ranges of characters that runs at these places cover."""
    ranges: list[tuple[int, int]] = []
    for place in sorted(places):
        if ranges and place <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], place + RUN)
        else:
            ranges.append((place, place + RUN))
    return ranges


def _pair(one: _Print, other: _Print) -> SimilarPair | None:
    shared = one.runs.keys() & other.runs.keys()
    characters = one.characters(shared)
    if characters < LEAST:
        return None
    return SimilarPair(one=one.side(shared), other=other.side(shared), characters=characters)
