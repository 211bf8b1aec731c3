"""Races in shared memory of which nothing comes.

Where all that is wrong with a call is races in which one side reads, it is simulated again, and
these further looks find out whether anything comes of what is read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from ptxsim.findings.finding import Finding, Kind, Severity
from ptxsim.machine import Machine
from ptxsim.outcome import SimLimits, SimOutcome

_FURTHER_LOOKS = 4  # at a call with races


def judge_races(
    machine: Machine, limits: SimLimits, look: Callable[[SimLimits], SimOutcome]
) -> SimOutcome:
    """The outcome of ``look``, which simulates one call; without races of which nothing comes.

    ``limits`` hold for all looks together. Memory is then what this outcome's look made of it.
    """
    working = time.thread_time()
    machine.first_look()
    first = seen = look(limits)
    for _ in range(_FURTHER_LOOKS):
        if seen.stopped or not _only_races(seen.findings) or not machine.second_look():
            break
        left = limits.seconds - (time.thread_time() - working)
        seen = look(replace(limits, seconds=left))
        if not seen.stopped and not _errors(seen.findings):
            return seen
    if seen is not first:
        machine.undo_looks()
    return first


def _errors(findings: Sequence[Finding]) -> list[Finding]:
    return [each for each in findings if each.severity is Severity.ERROR]


def _only_races(findings: Sequence[Finding]) -> bool:
    """Whether there are errors, and all are races of a read in shared memory with a write."""
    errors = _errors(findings)
    return bool(errors) and all(
        each.kind is Kind.RACE
        and each.access is not None
        and each.access.space == "shared"
        and each.access.write != each.other_write
        for each in errors
    )
