"""Outputs against a reference: error, first mismatch, and a picture of what is wrong.

An element is right if ``|got - want| / scale <= tolerance``. Written this way round, NaN is wrong.
"""

import math
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from grader.base import ErrorStats, Finding, Kind, Mismatch, element_words, wrong_elements
from grader.problems.expected import Cause, Expected
from grader.problems.inputs import Places, Source
from grader.problems.operands import Operand
from grader.problems.problem import Problem
from ptxsim.findings import Severity
from ptxsim.plan import POISONS, Record, Size
from ptxsim.text import NOTHING, Message, phrase, verbatim

Array = NDArray[Any]
Mask = NDArray[np.bool_]

MAP_ROWS, MAP_COLUMNS = 32, 64


class OutputCheck(Record):
    """The result of comparing the outputs of one call with the reference."""

    error: ErrorStats
    message: Message  # empty when right, else how much is wrong and, if the pattern is exact, why


def poisoned(operand: Operand, turn: int = 0) -> Array:
    """An output before the kernel: an element that is never written is wrong."""
    words = _poison(POISONS[turn % len(POISONS)], operand.bytes)
    return words.view(operand.element.dtype)[: operand.count]


def _poison(word: int, size: int) -> NDArray[np.uint32]:
    """So many bytes, rounded up to whole words."""
    return np.full(-(-size // 4), word, dtype=np.uint32)


def check(
    problem: Problem, size: Size, inputs: Sequence[Array], outputs: Sequence[Array]
) -> OutputCheck:
    """Compare the outputs with the reference, on the CPU."""
    expected = problem.reference(np, size, inputs)
    targets = [each for each in problem.operands(size) if each.written]
    found = [
        compare(np, operand, got, want, problem.tolerance(size))
        for operand, got, want in zip(targets, outputs, expected, strict=True)
    ]
    place = worst(found)
    if not found[place].wrong:
        return OutputCheck(error=found[place], message=NOTHING)
    seen = outputs[place][: expected[place].length]
    amount, guess = _amount(found[place], targets[place], seen)
    cause = NOTHING
    if guess:
        causes = problem.causes(size, inputs)
        cause = _zeros(targets[place], outputs[place]) or _cause(causes, targets, outputs)
        given = [each.name for each in problem.operands(size) if each.given]
        if (name := targets[place].name) in given:
            before = inputs[given.index(name)]
            cause = _unchanged(found[place], before, outputs[place]) or cause
    if cause:
        amount = phrase("{amount}: {cause}", amount=amount, cause=cause)
    return OutputCheck(error=found[place], message=amount)


def worst(found: Sequence[ErrorStats]) -> int:
    """The output that a message is about: the first wrong one, else that of the largest error."""
    wrong = next((place for place, each in enumerate(found) if each.wrong), None)
    largest = max(range(len(found)), key=lambda place: found[place].max or 0.0)
    return largest if wrong is None else wrong


def compare(
    xp: Any, operand: Operand, got: Any, expected: Expected, tolerance: float
) -> ErrorStats:
    """One output; ``xp`` is NumPy or CuPy."""
    logical = operand.logical(got)
    stats, wrong = measured(xp, operand, logical, expected, tolerance)
    if not stats.wrong:
        return stats
    place = int(wrong.reshape(-1).argmax())  # the first one, rows first
    index = tuple(int(each) for each in np.unravel_index(place, operand.shape))
    return msgspec.structs.replace(
        stats,
        first_mismatch=_mismatch(operand, index, logical[index], expected, index),
        tile_map=tile_map(xp.asnumpy(wrong) if hasattr(xp, "asnumpy") else wrong),
    )


def measured(
    xp: Any, operand: Operand, got: Any, expected: Expected, tolerance: float
) -> tuple[ErrorStats, Any]:
    """The statistics without a picture, and which elements are wrong. got: as stored."""
    exact, wide, want, error = expected.scale is None, operand.element.wide, expected.want, None
    if expected.wrong is not None:
        wrong = expected.wrong(got.reshape(-1)).reshape(got.shape)
    elif exact:
        wrong = got != want.astype(got.dtype, copy=False)
    if exact and not wrong[: expected.length].any():
        error = xp.zeros(1)  # of a large output the differences would take eight times its memory
    with np.errstate(invalid="ignore", over="ignore"):
        if error is None:
            error = wide(got)
            error -= wide(want) if exact else want
            xp.abs(error, out=error)
        if not exact:
            error /= expected.scale
            wrong = ~(error <= tolerance)
        rms = float(xp.sqrt(xp.mean(error**2)))
    if expected.length is not None:
        wrong[expected.length :] = False
    if expected.together and rms <= tolerance:
        wrong = xp.zeros_like(wrong)
    stats = ErrorStats(
        max=_finite(float(error.max())),
        rms=_finite(rms),
        tolerance=0.0 if exact else tolerance,
        wrong=int(wrong.sum()),
        operand=operand.name,
        shape=operand.shape,
        first_mismatch=None,
        tile_map=(),
        tile_edge=tile_edge(operand.shape),
    )
    return stats, wrong


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _mismatch(
    operand: Operand, index: tuple[int, ...], stored: Any, expected: Expected, at: Any
) -> Mismatch:
    """at: the element's place in ``expected.want``."""
    want, element = expected.want[at], operand.element
    got = float(element.wide(stored))
    whole = element.whole and expected.scale is None
    return Mismatch(
        index=index,
        element=operand.named(index),
        got=_finite(got),
        want=int(want) if whole else float(element.wide(want) if expected.scale is None else want),
        got_text=str(int(stored)) if element.whole else f"{got:.7g}",
    )


# --- a picture of the wrong elements ----------------------------------------------------------


def tile_edge(shape: tuple[int, ...]) -> int:
    """Elements along the edge of one sign of the map: a power of two, so that the signs lie on the
    borders of a kernel's tiles. Of a vector a sign shows so many elements in a row."""
    if len(shape) == 2:
        least = max(shape[0] / MAP_ROWS, shape[1] / MAP_COLUMNS)
    else:
        least = math.prod(shape) / (MAP_ROWS * MAP_COLUMNS)
    return 1 << max(0, math.ceil(least) - 1).bit_length()


def tile_map(wrong: Mask) -> tuple[str, ...]:
    """Rows of '.', '+', '#' (right, some wrong, all wrong): a matrix by its tiles, a vector line
    by line. () for a scalar."""
    if wrong.ndim == 1 and wrong.size == 1:
        return ()
    edge = tile_edge(wrong.shape)
    if wrong.ndim == 2:
        return tuple("".join(row) for row in _signs(wrong, edge, edge))
    signs = "".join(_signs(wrong.reshape(1, -1), 1, edge)[0])
    return tuple(signs[at : at + MAP_COLUMNS] for at in range(0, len(signs), MAP_COLUMNS))


def _signs(wrong: Mask, height: int, width: int) -> Array:
    counts = _tile_sums(wrong.astype(np.int64), height, width)
    sizes = _tile_sums(np.ones_like(wrong, dtype=np.int64), height, width)
    return np.where(counts == 0, ".", np.where(counts == sizes, "#", "+"))


def _tile_sums(values: NDArray[np.int64], height: int, width: int) -> NDArray[np.int64]:
    rows, columns = np.arange(0, values.shape[0], height), np.arange(0, values.shape[1], width)
    return np.add.reduceat(np.add.reduceat(values, rows, axis=0), columns, axis=1)


# --- in words ---------------------------------------------------------------------------------


def _amount(stats: ErrorStats, target: Operand, got: Array) -> tuple[Message, bool]:
    """How much is wrong, and whether it makes sense to look for the mistake."""
    count, total = stats.wrong, got.size
    amount = wrong_elements(count, total)
    raw = got.view(f"u{got.itemsize}")
    blanks = (_poison(each, got.nbytes).view(raw.dtype)[:total] for each in POISONS)
    unwritten = sum(int(np.count_nonzero(raw == blank)) for blank in blanks)
    if target.element.whole and raw.itemsize < 4:  # any bits are a likely result
        unwritten = 0
    if unwritten:
        some, left = phrase("{count} of them still NaN"), phrase("still NaN")
        if target.element.whole:
            some, left = phrase("{count} of them untouched"), phrase("untouched")
        left = left if unwritten == count else some.given(count=unwritten)
        words = phrase("{amount}, {blanks}: never written, or computed from memory nobody wrote")
        amount = words.given(amount=amount, blanks=left)
    return amount, unwritten < total


def _zeros(target: Operand, got: Array) -> Message:
    """Say that nothing but zeros was stored, before any mistake that would leave zeros here too."""
    if np.count_nonzero(got):
        return NOTHING
    words = phrase("{name} is all zeros") if got.size > 1 else phrase("{name} is 0")
    return words.given(name=target.name)


def _unchanged(stats: ErrorStats, before: Array, got: Array) -> Message:
    """Say that an output is as it was given, or that its end is and all before that is right."""
    changed = np.flatnonzero(before != got)
    if not changed.size:
        return phrase("{name} is as it was given", name=stats.operand)
    first = int(changed[-1]) + 1
    words = phrase("from element {first} on {name} is as it was given", name=stats.operand)
    return words.given(first=first) if got.size - first == stats.wrong else NOTHING


def _cause(causes: Any, targets: Sequence[Operand], outputs: Sequence[Array]) -> Message:
    """The first mistake that explains every element of every output, by the same criterion."""
    cause: Cause
    for cause in causes:
        if all(
            not measured(np, target, target.logical(got), each, cause.tolerance)[0].wrong
            if each.scale is None
            else bool((np.abs(target.wide(got) - each.want) <= cause.tolerance * each.scale).all())
            for target, got, each in zip(targets, outputs, cause.outputs, strict=True)
        ):
            return verbatim(cause.words)
    return NOTHING


# --- samples -----------------------------------------------------------------------------------

_SAMPLED, _ALONG_A_LINE = 64, 8
_SECRET = secrets.SystemRandom()


class OutputSample(Record):
    """Some elements of one output."""

    places: Places  # in memory
    got: NDArray[Any]  # as stored


class Differing(Record):
    """An output of which the host finds elements wrong that the GPU's comparison let pass."""

    error: ErrorStats  # of the sampled elements
    sampled: int

    @property
    def message(self) -> Message:
        words = phrase("{wrong} of {sampled} elements that the host computed again are wrong")
        return words.given(wrong=self.error.wrong, sampled=self.sampled)

    @property
    def finding(self) -> Finding:
        first = self.error.first_mismatch
        assert first is not None
        words = phrase(
            "the comparison on the GPU found nothing wrong, but {element} is {got}, and the host "
            "computed {want:.7g}: something on the GPU changed the grader's code or memory"
        ).given(element=element_words(first.element), got=first.got_text, want=first.want)
        return Finding(kind=Kind.CHECKS_DIFFER, severity=Severity.ERROR, message=words)


def take(operand: Operand, copy: Callable[[int, int], NDArray[Any]]) -> OutputSample:
    """copy: the elements of the output's memory from the first place to before the second.

    Of a matrix a few lines are copied whole, and places along a line are drawn afterwards: the 64
    elements need few rows and columns of the inputs. Of a vector single elements are copied.
    """
    length = 1
    if len(operand.shape) == 2:
        length = operand.shape[1 if operand.order == "row" else 0]
    lines = _drawn(operand.count // length, _SAMPLED // min(length, _ALONG_A_LINE))
    copied = [copy(line * length, (line + 1) * length) for line in lines.tolist()]
    along = _drawn(length, _SAMPLED // len(lines))
    places = lines[:, None] * length + along
    got = np.concatenate([each[along] for each in copied])
    return OutputSample(places=places.reshape(-1), got=got)


def _drawn(extent: int, most: int) -> Places:
    """Numbers below ``extent``: all, or the first, the last, and others that nobody can predict."""
    if extent <= most:
        return np.arange(extent)
    inner = _SECRET.sample(range(1, extent - 1), most - 2)
    return np.array([0, *sorted(inner), extent - 1])


def differing(
    problem: Problem, size: Size, inputs: Sequence[Source], samples: Sequence[OutputSample]
) -> Differing | None:
    """The first output with wrong elements; None if all sampled ones are right, or if the problem
    computes nothing again at this size. NaN is wrong."""
    found = problem.recomputed(size, inputs, [each.places for each in samples])
    if found is None:
        return None
    targets = [each for each in problem.operands(size) if each.written]
    for target, sample, expected in zip(targets, samples, found.outputs, strict=True):
        stats, wrong = measured(np, target, sample.got, expected, found.tolerance)
        if stats.wrong:
            at = int(wrong.argmax())
            index = target.index(int(sample.places[at]))
            first = _mismatch(target, index, sample.got[at], expected, at)
            error = msgspec.structs.replace(stats, first_mismatch=first, tile_edge=1)
            return Differing(error=error, sampled=sample.got.size)
    return None
