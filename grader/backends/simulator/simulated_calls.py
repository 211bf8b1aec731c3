"""The calls of one case: each on fresh inputs, each verified, and what they come to.

A plan without a set-up is one call. Where a call leaves memory behind, the set-up runs first, as
the first call of a real program does, then the call that is judged, then the same call once more:
it must not depend on finding things as the first one did.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.backends.protocol import CaseOutcome, PlannedCase
from grader.backends.simulator.simulation_messages import Room
from grader.backends.simulator.wording import worded
from grader.model import (
    NOTHING,
    Finding,
    Kind,
    Message,
    Plan,
    Record,
    Severity,
    Size,
    element_words,
    enumerated,
    listed,
    phrase,
    verbatim,
)
from grader.problems.comparison import Check, check, poisoned
from grader.problems.inputs import make_inputs
from grader.problems.operands import Operand
from grader.problems.problem import FUNCTION, Problem
from ptxsim.findings.finding import Event
from ptxsim.findings.finding import Finding as SeenEvent
from ptxsim.outcome import SimOutcome

_PRINTED_CHARACTERS = 2000
_AGAIN = 1 / 3  # of a call's time: the call runs once more if it took less
_CALLS = 3
_LATER_IS_WRONG = {
    2: phrase("the first call is right, the second is not: {what}"),
    3: phrase("the first two calls are right, the third is not: {what}"),
}


class Arrays:
    """The operands of one size, and copies of the inputs to compare with."""

    def __init__(self, problem: Problem, size: Size) -> None:
        self._problem, self._size = problem, size
        operands = problem.operands(size)
        self._inputs = [each for each in operands if each.role == "in"]
        self._outputs = [each for each in operands if each.role == "out"]
        self._originals = make_inputs(operands)
        self._given = [each.copy() for each in self._originals]
        self._results = [poisoned(each) for each in self._outputs]
        self.buffers = {i: _bytes(each) for i, each in enumerate((*self._given, *self._results))}

    @property
    def bytes(self) -> int:
        return sum(each.nbytes for each in (*self._given, *self._results))

    def renew(self) -> None:
        """Other inputs, and nothing in the outputs."""
        self._originals = make_inputs((*self._inputs, *self._outputs))
        for given, original in zip(self._given, self._originals, strict=True):
            given[:] = original
        for result, operand in zip(self._results, self._outputs, strict=True):
            _bytes(result)[:] = _bytes(poisoned(operand))

    def check(self) -> Check:
        return check(self._problem, self._size, self._originals, self._results)

    def modified(self) -> tuple[Finding, ...]:
        """A finding for each input that is no longer as it was given."""
        found = []
        for operand, before, after in zip(self._inputs, self._originals, self._given, strict=True):
            changed = np.flatnonzero(
                (_bytes(before) != _bytes(after)).reshape(operand.count, -1).any(axis=1)
            )
            if changed.size:
                found.append(self._modified(operand, changed))
        return tuple(found)

    def _modified(self, operand: Operand, changed: NDArray[Any]) -> Finding:
        place = operand.named(operand.index(int(changed[0])))
        names = enumerated(verbatim(each.name) for each in self._inputs)
        return Finding(
            kind=Kind.INPUT_MODIFIED,
            severity=Severity.ERROR,
            message=phrase(
                "{place} was overwritten; {names} must not change",
                place=element_words(place),
                names=names,
            ),
            count=int(changed.size),
        )


class Seen(Record):
    """One call."""

    outcome: SimOutcome
    check: Check | None  # None: it did not end
    findings: tuple[Finding, ...]

    @property
    def fails(self) -> bool:
        wrong = self.check is None or bool(self.check.message)
        return wrong or any(each.severity is Severity.ERROR for each in self.findings)


def seen_calls(
    calls: Iterator[SimOutcome],
    plan: Plan,
    arrays: Arrays,
    seconds: float,
    rooms: Sequence[Room],
) -> list[Seen]:
    """The calls as far as they are right; ``seconds`` is what each may take. rooms: one for
    every launch of the plan."""
    seen: list[Seen] = []
    while True:
        started = time.thread_time()
        outcome = next(calls)
        took = time.thread_time() - started
        check = None if outcome.stopped else arrays.check()
        findings = (*worded(outcome.findings, _gpu(rooms, outcome.findings)), *arrays.modified())
        seen.append(Seen(outcome=outcome, check=check, findings=findings))
        again = len(seen) == 1 or (not plan.unsettled and took <= _AGAIN * seconds)
        if not plan.setup or seen[-1].fails or not again or len(seen) == _CALLS:
            return seen
        arrays.renew()


def summary(case: PlannedCase, seen: Sequence[Seen]) -> CaseOutcome:
    """What the calls come to: counts are the judged call's, the verdict that of the worst."""
    judged, last = seen[min(1, len(seen) - 1)], seen[-1]
    findings = list(judged.findings)
    known = {_what(each) for each in findings}
    for each in (finding for other in seen for finding in other.findings):
        if _what(each) not in known:
            known.add(_what(each))
            findings.append(each)
    message = last.check.message if last.check else NOTHING
    if len(seen) > 1 and last.fails:
        cause = _left_behind(len(seen), seen[-2].outcome.changed)
        if message:
            message = phrase("{cause}; {wrong}", cause=cause, wrong=message)
        findings.insert(0, Finding(kind=Kind.STATE_LEFT, severity=Severity.ERROR, message=cause))
    return CaseOutcome(
        id=case.id,
        size=case.plan.size,
        refused=None,
        message=message,
        stopped=last.outcome.stopped,
        seconds=sum(each.outcome.seconds for each in seen),
        error=last.check.error if last.check else None,
        findings=(*findings, *_unsettled(case.plan)),
        lines=judged.outcome.lines,
        printed=judged.outcome.printed[:_PRINTED_CHARACTERS],
    )


def _gpu(rooms: Sequence[Room], findings: Sequence[SeenEvent]) -> str:
    """The GPU that a launch of too many blocks did not fit."""
    held = {found.arrived for found in findings if found.event is Event.NOT_ALL_RESIDENT}
    return next((room.gpu for room in rooms if room.blocks in held), "")


def _unsettled(plan: Plan) -> tuple[Finding, ...]:
    if not plan.unsettled:
        return ()
    words = phrase(
        "the calls of {function} differ, and the third one is judged: {how}",
        function=FUNCTION,
        how=plan.unsettled,
    )
    return (Finding(kind=Kind.CALLS_DIFFER, severity=Severity.WARNING, message=words),)


def _left_behind(calls: int, changed: Sequence[str]) -> Message:
    what = (
        phrase("it finds {names} changed", names=listed(map(verbatim, changed[:3])))
        if changed
        else phrase("it depends on the one before it")
    )
    return _LATER_IS_WRONG[calls].given(what=what)


def _what(finding: Finding) -> tuple[object, ...]:
    return finding.kind, finding.file, finding.line, finding.message


def _bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    return values.view(np.uint8)
