"""The host's own check of what ran on the GPU, on a few elements of each run.

It takes nothing from the GPU but these elements, and it launches nothing there. The worker takes
them (``take``); the grader's own process, which no device code can reach, checks them.
"""

import ctypes
import secrets
import time
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from grader import problems
from grader.base import MachineError, Native
from grader.problems import take as taken_of
from grader.run.gpu.messages import Elements, Measured, Taken
from grader.run.protocol import CaseOutcome
from ptxsim.plan import Size

# Of the runs of one case so many are checked at least, and others for so long: a check takes from
# less than a millisecond to some ten, and a sum of 2²⁸ numbers a second or more.
_AT_LEAST, _SECONDS = 2, 0.1
_MOST = 512  # runs of which elements are sent; no more are checked in that time
_PLACE = np.dtype(np.int64)


def take(
    problem: problems.Problem, size: Size, keys: Sequence[bytes], outputs: Sequence[Any]
) -> Taken:
    """Elements of the outputs, which CuPy copies as they lie: ``get`` of contiguous elements is one
    copy by the driver. Call it before any kernel of ours runs on these outputs."""
    targets = [each for each in problem.operands(size) if each.written]
    elements = []
    for target, array in zip(targets, outputs, strict=True):
        each = taken_of(target, partial(_copied, array))
        places = each.places.astype(_PLACE).tobytes()
        elements.append(Elements(places=places, got=each.got.tobytes()))
    return Taken(keys=tuple(keys), outputs=tuple(elements))


def _copied(array: Any, first: int, end: int) -> Any:
    return array[first:end].get()


def measured(outcome: CaseOutcome, first: Sequence[Taken], later: Sequence[Taken]) -> Measured:
    """Build the message; of too many later runs, draw some at random, so that no program can tell
    which are checked."""
    if len(later) > _MOST:
        later = secrets.SystemRandom().sample(later, _MOST)
    return Measured(outcome=outcome, first=tuple(first), later=tuple(later))


class HostCheck:
    def __init__(self, problem: problems.Problem) -> None:
        self._problem = problem

    def confirm(self, seen: Measured) -> CaseOutcome:
        """The outcome, or that of a wrong answer if the host finds elements of one of its runs
        wrong. Raises MachineError for elements that no worker takes."""
        outcome, found = seen.outcome, None
        # One that is wrong already stays so; changed inputs have another product.
        if outcome.error is not None and not outcome.error.wrong and not outcome.findings:
            size = Size(dims=outcome.size)
            found = self._wrong(size, seen.first) or self._wrong(size, seen.later)
        if found is not None:
            message, error, findings = found.message, found.error, (found.finding,)
            outcome = msgspec.structs.replace(
                outcome, message=message, error=error, findings=findings, timing=None
            )
        return msgspec.structs.replace(outcome, findings=(*outcome.findings, *seen.notes))

    def _wrong(self, size: Size, runs: Sequence[Taken]) -> problems.Differing | None:
        """Return the first difference found in ``runs``, which are checked in random order."""
        operands = self._problem.operands(size)
        given = [each for each in operands if each.given]
        end = time.monotonic() + _SECONDS
        for done, run in enumerate(secrets.SystemRandom().sample(runs, len(runs))):
            if done >= _AT_LEAST and time.monotonic() > end:
                break
            samples = _samples(run, operands)
            inputs = [HostInput(*each) for each in zip(run.keys, given, strict=True)]
            found = problems.differing(self._problem, size, inputs, samples)
            if found:
                return found
        return None


def _samples(run: Taken, operands: Sequence[problems.Operand]) -> list[problems.OutputSample]:
    """The elements as numbers. The worker ran beside code that may have changed it: raises
    MachineError for what is not as ``take`` makes it."""
    targets = [each for each in operands if each.written]
    inputs, keys = sum(each.given for each in operands), [len(key) for key in run.keys]
    if len(run.outputs) != len(targets) or keys != [problems.KEY_BYTES] * inputs:
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
        samples.append(problems.OutputSample(places=places, got=np.frombuffer(each.got, kind)))
    return samples


def _unreadable() -> MachineError:
    return MachineError.saying("the GPU worker's samples cannot be read")


KEY_STREAM = Native(
    name="key-stream",
    sources=(Path(__file__).with_name("key_stream.cpp"),),
    shared=True,
    flags=("-O3",),
)


@cache
def _generator() -> Any:
    generator = ctypes.CDLL(str(KEY_STREAM.compiled())).key_stream_words
    generator.restype = None
    return generator


def key_words(key: bytes, places: problems.Places) -> problems.Words:
    """Return the words of ``inputs.key_stream`` at ``places``. Raises ToolchainError."""
    flat = np.ascontiguousarray(places, np.int64)
    found = np.empty(flat.shape, np.uint32)
    at, into = (each.ctypes.data_as(ctypes.c_void_p) for each in (flat, found))
    _generator()(key, at, ctypes.c_uint64(flat.size), into)
    return found


class HostInput:
    """One input: a ``Source``."""

    def __init__(self, key: bytes, operand: problems.Operand) -> None:
        self._key, self._operand = key, operand

    def at(self, places: problems.Places) -> problems.Numbers:
        kind = problems.settled(self._operand.values, self._key)
        words = key_words(self._key, places)
        return problems.values_of(words, kind, places, self._operand.count)
