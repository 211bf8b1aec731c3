"""The host's own check of what ran on the GPU, on a few elements of each run.

It takes nothing from the GPU but these elements, and it launches nothing there.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from grader.backends.gpu.host_inputs import HostInput, KeyStreams
from grader.backends.protocol import CaseOutcome
from grader.model import Record, Size
from grader.problems.problem import Problem
from grader.problems.samples import Sample, differing, take

# Of the runs of one case so many are checked at least, and others for so long: a check takes from
# less than a millisecond to some ten, and a sum of 2²⁸ numbers a second or more.
_AT_LEAST, _SECONDS = 2, 0.1


class Taken(Record):
    """Samples of the outputs of one run, and the keys of its inputs."""

    keys: tuple[bytes, ...]
    outputs: tuple[Sample, ...]


class HostCheck:
    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._streams = KeyStreams()

    def take(self, size: Size, keys: Sequence[bytes], outputs: Sequence[Any]) -> Taken:
        """Samples of the outputs, which CuPy copies as they lie: ``get`` of contiguous elements is
        one copy by the driver. Call it before any kernel of ours runs on these outputs."""
        targets = self._problem.operands(size)[len(keys) :]
        samples = [
            take(target, partial(_copied, array))
            for target, array in zip(targets, outputs, strict=True)
        ]
        return Taken(keys=tuple(keys), outputs=tuple(samples))

    def confirm(
        self,
        outcome: CaseOutcome,
        runs: Sequence[Taken],
        beat: Callable[[], None] = lambda: None,
    ) -> CaseOutcome:
        """``outcome``, or that of a wrong answer if the host finds elements of one of its runs
        wrong. Runs are checked in an order that nobody can predict; ``beat`` is called after each.
        """
        if outcome.error is None or outcome.error.wrong or outcome.findings:
            return outcome  # wrong already; changed inputs have another product
        operands = self._problem.operands(outcome.size)
        end = time.monotonic() + _SECONDS
        for done, run in enumerate(secrets.SystemRandom().sample(runs, len(runs))):
            if done >= _AT_LEAST and time.monotonic() > end:
                break
            inputs = [
                HostInput(self._streams, key, operand)
                for key, operand in zip(run.keys, operands, strict=False)
            ]
            found = differing(self._problem, outcome.size, inputs, run.outputs)
            beat()
            if found:
                return msgspec.structs.replace(
                    outcome,
                    message=found.message,
                    error=found.error,
                    findings=(*outcome.findings, found.finding),
                    timing=None,
                )
        return outcome


def _copied(array: Any, first: int, end: int) -> Any:
    return array[first:end].get()
