"""A few elements of each output, computed again on the host: what no code on a GPU can forge.

On a GPU the submission's device code shares an address space with the grader's own, which compares
all elements there. So some elements are copied before any of the grader's code runs, by the driver,
at places that are drawn afterwards. The host computes them from the keys of the inputs.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.model import (
    ErrorStats,
    Finding,
    Kind,
    Message,
    Record,
    Severity,
    Size,
    element_words,
    phrase,
)
from grader.problems.comparison import finite, mismatch
from grader.problems.inputs import Places, Source
from grader.problems.operands import Operand
from grader.problems.problem import Expected, Problem

_SAMPLED, _ALONG_A_LINE = 64, 8
_SECRET = secrets.SystemRandom()


class Sample(Record):
    """Some elements of one output."""

    places: Places  # in memory
    got: NDArray[Any]  # as stored


class Differing(Record):
    """An output of which the host finds elements wrong that the GPU's comparison let pass."""

    error: ErrorStats  # of the sampled elements
    sampled: int

    @property
    def message(self) -> Message:
        return phrase(
            "{wrong} of {sampled} elements that the host computed again are wrong",
            wrong=self.error.wrong,
            sampled=self.sampled,
        )

    @property
    def finding(self) -> Finding:
        first = self.error.first_mismatch
        assert first is not None
        words = phrase(
            "the comparison on the GPU found nothing wrong, but {element} is {got}, and the host "
            "computed {want:.7g}: something on the GPU changed the grader's code or memory",
            element=element_words(first.element),
            got=first.got_text,
            want=first.want,
        )
        return Finding(kind=Kind.CHECKS_DIFFER, severity=Severity.ERROR, message=words)


def take(operand: Operand, copy: Callable[[int, int], NDArray[Any]]) -> Sample:
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
    return Sample(places=places.reshape(-1), got=np.concatenate([each[along] for each in copied]))


def _drawn(extent: int, most: int) -> Places:
    """Numbers below ``extent``: all, or the first, the last, and others that nobody can predict."""
    if extent <= most:
        return np.arange(extent)
    inner = _SECRET.sample(range(1, extent - 1), most - 2)
    return np.array([0, *sorted(inner), extent - 1])


def differing(
    problem: Problem, size: Size, inputs: Sequence[Source], samples: Sequence[Sample]
) -> Differing | None:
    """The first output with wrong elements; None if all sampled ones are right, or if the problem
    computes nothing again at this size. NaN is wrong."""
    found = problem.recomputed(size, inputs, [each.places for each in samples])
    if found is None:
        return None
    targets = [each for each in problem.operands(size) if each.role == "out"]
    for target, sample, expected in zip(targets, samples, found.outputs, strict=True):
        error = _compared(target, sample, expected, found.tolerance)
        if error.wrong:
            return Differing(error=error, sampled=sample.got.size)
    return None


def _compared(target: Operand, sample: Sample, expected: Expected, tolerance: float) -> ErrorStats:
    got = target.element.wide(sample.got)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(got - expected.want) / expected.scale
    wrong = ~(error <= tolerance)
    at = int(wrong.argmax())
    index = target.index(int(sample.places[at]))
    first = mismatch(target, index, float(got[at]), float(expected.want[at]))
    return ErrorStats(
        max=finite(float(error.max())),
        rms=finite(float(np.sqrt(np.mean(error**2)))),
        tolerance=tolerance,
        wrong=int(wrong.sum()),
        first_mismatch=first if wrong.any() else None,
        tile_map=(),
        tile_edge=1,
        operand=target.name,
        shape=target.shape,
    )
