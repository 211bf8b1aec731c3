"""What measured times prove: findings about launches that are too fast or too slow.

Three rules. No repetition may be faster than the GPU can be. The GPU's events may not say
much less than the host's clock. And since an untimed launch could do work for the timed ones, each
may take only ten times as long as the timed launches of its size; if its size is not timed, the
slowest pace of the timed sizes counts. That last limit includes another tenth of a second, for
loading in a first launch and for thin sizes that keep only one block busy. docs/verification.md
says how far honest launches stay below it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec

from grader.backends.protocol import CaseOutcome
from grader.backends.statistics import Clocked
from grader.hardware.peaks import least_ms
from grader.model import Finding, GpuInfo, Kind, Message, Severity, Size, phrase
from grader.problems.problem import Problem

UNSEEN_MS, UNSEEN_SHARE = 2.0, 0.1  # of a repetition: the two clocks may differ by their sum
_TIMES_AS_LONG = 10
_ON_TOP_MS = 100.0
_TILE = 256  # a kernel works on whole tiles, however thin an operand is


def held_to_the_clock(
    outcomes: Sequence[CaseOutcome], problem: Problem, gpu: GpuInfo | None
) -> tuple[CaseOutcome, ...]:
    """The outcomes with the findings of all three rules; impossible times are no timing."""
    if gpu is None:
        return tuple(outcomes)
    return _held_to_pace([_possible(outcome, problem, gpu) for outcome in outcomes], problem)


# --- timed launches ---------------------------------------------------------------------------


def _possible(outcome: CaseOutcome, problem: Problem, gpu: GpuInfo) -> CaseOutcome:
    found = (*_too_fast(outcome, problem, gpu), *_unseen(outcome, problem))
    if not found:
        return outcome
    return msgspec.structs.replace(outcome, timing=None, findings=(*outcome.findings, *found))


def _too_fast(outcome: CaseOutcome, problem: Problem, gpu: GpuInfo) -> tuple[Finding, ...]:
    least = least_ms(*problem.least(outcome.size), gpu, problem.arithmetic)
    impossible = [own.gpu_ms for own, _ in outcome.clocks if not (own.gpu_ms >= least)]
    if not impossible:
        return ()
    return _impossible(
        phrase(
            "a repetition took {took:.4g} ms; nothing of this size takes less than {least:.4g} ms "
            "on this GPU",
            took=impossible[0],
            least=least,
        )
    )


def _unseen(outcome: CaseOutcome, problem: Problem) -> tuple[Finding, ...]:
    unseen = unseen_ms(outcome.clocks)
    if unseen <= 0:
        return ()
    return _impossible(
        phrase(
            "by the host's clock a repetition took {unseen:.4g} ms more than the GPU's events say; "
            "{baseline}'s repetitions beside it did not",
            unseen=unseen,
            baseline=problem.baseline,
        )
    )


def _impossible(message: Message) -> tuple[Finding, ...]:
    return (Finding(kind=Kind.IMPOSSIBLE_TIME, severity=Severity.ERROR, message=message),)


def unseen_ms(pairs: Sequence[tuple[Clocked, Clocked]]) -> float:
    """How much longer the submission takes by the host's clock than by its events; 0 if they agree.

    pairs: submission and baseline, one after the other. The host waits a little longer for any
    launch, so the baseline says how much that is. Medians, because the host may be busy.
    """
    if not pairs:
        return 0.0
    mine, theirs = (
        [each.host_ms - each.gpu_ms for each in side] for side in zip(*pairs, strict=True)
    )
    extra = statistics.median(mine) - statistics.median(theirs)
    took = statistics.median(own.gpu_ms for own, _ in pairs)
    return 0.0 if extra <= UNSEEN_MS + UNSEEN_SHARE * took else extra


# --- untimed launches -------------------------------------------------------------------------


def _held_to_pace(outcomes: Sequence[CaseOutcome], problem: Problem) -> tuple[CaseOutcome, ...]:
    """Without a timed case there is no pace, and only the lab's limit applies."""
    paces = {each.size: _pace(each, problem) for each in outcomes if each.timing}
    if not paces:
        return tuple(outcomes)
    slowest = max(paces.values())
    return tuple(_held(each, problem, paces.get(each.size, slowest)) for each in outcomes)


def _pace(outcome: CaseOutcome, problem: Problem) -> float:
    """Milliseconds per operation or byte, in the slowest run or mode."""
    assert outcome.timing
    runs = [run.speed for run in outcome.timing.runs]
    speed = min(*runs, outcome.timing.scored_speed)
    seconds = problem.amount(outcome.size) / (speed * problem.unit.scale)
    return 1e3 * seconds / _whole(outcome.size, problem)


def _whole(size: Size, problem: Problem) -> int:
    """What the unit counts at this size, in whole tiles."""
    dims = {name: -(-extent // _TILE) * _TILE for name, extent in size.dims.items()}
    return problem.amount(Size(dims=dims))


def _held(outcome: CaseOutcome, problem: Problem, pace: float) -> CaseOutcome:
    most = _ON_TOP_MS + _TIMES_AS_LONG * pace * _whole(outcome.size, problem)
    if outcome.untimed_ms is None or outcome.untimed_ms <= most:
        return outcome
    finding = Finding(
        kind=Kind.UNTIMED_WORK,
        severity=Severity.ERROR,
        message=phrase(
            "a launch that was verified but not timed took {took:.4g} ms; at the pace of the timed "
            "launches it may take {most:.4g} ms. Do the same work in every call",
            took=outcome.untimed_ms,
            most=most,
        ),
    )
    return msgspec.structs.replace(outcome, findings=(*outcome.findings, finding))
