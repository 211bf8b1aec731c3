"""The host's own check of what ran on the GPU, on a few elements of each run.

It takes nothing from the GPU but these elements, and it launches nothing there. The worker takes
them (``take``); the grader's own process, which no device code can reach, checks them.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import msgspec
import numpy as np

from grader.backends.gpu.gpu_messages import Elements, Measured, Taken
from grader.backends.gpu.host_inputs import HostInput, KeyStreams
from grader.backends.protocol import CaseOutcome
from grader.errors import MachineError
from grader.model import Size, phrase
from grader.problems.inputs import KEY_BYTES
from grader.problems.operands import Operand
from grader.problems.problem import Problem
from grader.problems.samples import Differing, Sample, differing
from grader.problems.samples import take as taken_of

# Of the runs of one case so many are checked at least, and others for so long: a check takes from
# less than a millisecond to some ten, and a sum of 2²⁸ numbers a second or more.
_AT_LEAST, _SECONDS = 2, 0.1
_MOST = 512  # runs of which elements are sent; no more are checked in that time
_PLACE = np.dtype(np.int64)


def take(problem: Problem, size: Size, keys: Sequence[bytes], outputs: Sequence[Any]) -> Taken:
    """Elements of the outputs, which CuPy copies as they lie: ``get`` of contiguous elements is one
    copy by the driver. Call it before any kernel of ours runs on these outputs."""
    targets = problem.operands(size)[len(keys) :]
    samples = [
        taken_of(target, partial(_copied, array))
        for target, array in zip(targets, outputs, strict=True)
    ]
    elements = (
        Elements(places=each.places.astype(_PLACE).tobytes(), got=each.got.tobytes())
        for each in samples
    )
    return Taken(keys=tuple(keys), outputs=tuple(elements))


def _copied(array: Any, first: int, end: int) -> Any:
    return array[first:end].get()


def measured(outcome: CaseOutcome, first: Sequence[Taken], later: Sequence[Taken]) -> Measured:
    """Of very many later runs, some that nobody can predict."""
    if len(later) > _MOST:
        later = secrets.SystemRandom().sample(later, _MOST)
    return Measured(outcome=outcome, first=tuple(first), later=tuple(later))


class HostCheck:
    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    @cached_property
    def _streams(self) -> KeyStreams:
        return KeyStreams()

    def confirm(self, seen: Measured) -> CaseOutcome:
        """The outcome, or that of a wrong answer if the host finds elements of one of its runs
        wrong. Raises MachineError for elements that no worker takes."""
        outcome = self._confirmed(seen)
        return msgspec.structs.replace(outcome, findings=(*outcome.findings, *seen.notes))

    def _confirmed(self, seen: Measured) -> CaseOutcome:
        outcome = seen.outcome
        if outcome.error is None or outcome.error.wrong or outcome.findings:
            return outcome  # wrong already; changed inputs have another product
        found = self._wrong(outcome.size, seen.first) or self._wrong(outcome.size, seen.later)
        if found is None:
            return outcome
        return msgspec.structs.replace(
            outcome,
            message=found.message,
            error=found.error,
            findings=(*outcome.findings, found.finding),
            timing=None,
        )

    def _wrong(self, size: Size, runs: Sequence[Taken]) -> Differing | None:
        """What is wrong with one of some runs, which are checked in an order that nobody can
        predict."""
        operands = self._problem.operands(size)
        given = [each for each in operands if each.role == "in"]
        end = time.monotonic() + _SECONDS
        for done, run in enumerate(secrets.SystemRandom().sample(runs, len(runs))):
            if done >= _AT_LEAST and time.monotonic() > end:
                break
            samples = _samples(run, operands)
            inputs = [
                HostInput(self._streams, key, operand)
                for key, operand in zip(run.keys, given, strict=True)
            ]
            found = differing(self._problem, size, inputs, samples)
            if found:
                return found
        return None


def _samples(run: Taken, operands: Sequence[Operand]) -> list[Sample]:
    """The elements as numbers. The worker ran beside code that may have changed it: raises
    MachineError for what is not as ``take`` makes it."""
    targets = [each for each in operands if each.role == "out"]
    keys = [len(key) for key in run.keys]
    if len(run.outputs) != len(targets) or keys != [KEY_BYTES] * (len(operands) - len(targets)):
        raise _unreadable()
    samples = []
    for each, target in zip(run.outputs, targets, strict=True):
        kind = np.dtype(target.element.dtype)
        count, odd = divmod(len(each.places), _PLACE.itemsize)
        if odd or not count or len(each.got) != count * kind.itemsize:
            raise _unreadable()
        places = np.frombuffer(each.places, _PLACE)
        if places.min() < 0 or places.max() >= target.count:
            raise _unreadable()
        samples.append(Sample(places=places, got=np.frombuffer(each.got, kind)))
    return samples


def _unreadable() -> MachineError:
    return MachineError(phrase("the GPU worker's samples cannot be read"))
