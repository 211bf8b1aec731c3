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
from grader.model import Finding, Kind, Mnk, Plan, Record, Severity
from grader.problems import product as verify
from grader.problems.inputs import Floats, make_inputs
from ptxsim.findings.finding import Event
from ptxsim.findings.finding import Finding as SeenEvent
from ptxsim.simulator import SimOutcome

_PRINTED_CHARACTERS = 2000
_AGAIN = 1 / 3  # of a call's time: the call runs once more if it took less
_ORDINALS = ("first", "second", "third")


class Matrices:
    """A, B and C of one size, and copies of A and B to compare with."""

    def __init__(self, size: Mnk) -> None:
        self.size = size
        self._a, self._b = make_inputs(size)
        self._given = {"A": self._a.copy(), "B": self._b.copy()}
        self._c = verify.poisoned(size)
        views = (self._given["A"], self._given["B"], self._c)
        self.buffers = {index: _bytes(view) for index, view in enumerate(views)}

    @property
    def bytes(self) -> int:
        return self._a.nbytes + self._b.nbytes + self._c.nbytes

    def renew(self) -> None:
        """Other inputs, and nothing in C."""
        self._a, self._b = make_inputs(self.size)
        self._given["A"][:], self._given["B"][:] = self._a, self._b
        self._c[:] = verify.poisoned(self.size)

    def check(self) -> verify.Check:
        return verify.check(self.size, self._a, self._b, self._c)

    def modified(self) -> tuple[Finding, ...]:
        """A finding for each input that is no longer as it was given."""
        originals = {"A": self._a, "B": self._b}
        return tuple(
            _modified(name, self.size, before, self._given[name])
            for name, before in originals.items()
            if not np.array_equal(before.view(np.uint32), self._given[name].view(np.uint32))
        )


class Seen(Record):
    """One call."""

    outcome: SimOutcome
    check: verify.Check | None  # None: it did not end
    findings: tuple[Finding, ...]

    @property
    def fails(self) -> bool:
        wrong = self.check is None or bool(self.check.message)
        return wrong or any(each.severity is Severity.ERROR for each in self.findings)


def seen_calls(
    calls: Iterator[SimOutcome],
    plan: Plan,
    matrices: Matrices,
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
        check = None if outcome.stopped else matrices.check()
        findings = (*worded(outcome.findings, _gpu(rooms, outcome.findings)), *matrices.modified())
        seen.append(Seen(outcome=outcome, check=check, findings=findings))
        again = len(seen) == 1 or (not plan.unsettled and took <= _AGAIN * seconds)
        if not plan.setup or seen[-1].fails or not again or len(seen) == len(_ORDINALS):
            return seen
        matrices.renew()


def summary(case: PlannedCase, seen: Sequence[Seen]) -> CaseOutcome:
    """What the calls come to: counts are the judged call's, the verdict that of the worst."""
    judged, last = seen[min(1, len(seen) - 1)], seen[-1]
    findings = list(judged.findings)
    known = {_what(each) for each in findings}
    for each in (finding for other in seen for finding in other.findings):
        if _what(each) not in known:
            known.add(_what(each))
            findings.append(each)
    message = last.check.message if last.check else ""
    if len(seen) > 1 and last.fails:
        cause = _left_behind(len(seen), seen[-2].outcome.changed)
        message = f"{cause}; {message}" if message else message
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
    words = f"the calls of run_custom differ, and the third one is judged: {plan.unsettled}"
    return (Finding(kind=Kind.CALLS_DIFFER, severity=Severity.WARNING, message=words),)


def _left_behind(calls: int, changed: Sequence[str]) -> str:
    right = "the first call is" if calls == 2 else "the first two calls are"
    what = f"finds {', '.join(changed[:3])} changed" if changed else "depends on the one before it"
    return f"{right} right, the {_ORDINALS[calls - 1]} is not: it {what}"


def _what(finding: Finding) -> tuple[object, ...]:
    return finding.kind, finding.file, finding.line, finding.message


def _bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    return values.view(np.uint8)


def _modified(name: str, size: Mnk, before: Floats, after: Floats) -> Finding:
    changed = np.flatnonzero(before.view(np.uint32) != after.view(np.uint32))
    major, minor = divmod(int(changed[0]), size.k)
    row, column = (major, minor) if name == "A" else (minor, major)
    return Finding(
        kind=Kind.INPUT_MODIFIED,
        severity=Severity.ERROR,
        message=f"{name}[row {row}, column {column}] was overwritten; A and B must not change",
        count=int(changed.size),
    )
