"""A submission's standing: its largest timed size among the rungs of the same GPU model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from grader.ladder.document import Ladder, Speed, Step
from grader.model import CaseResult, Dims, GpuInfo, Standing, StandingRung, Timing, Verdict


def standing(
    cases: Sequence[CaseResult], gpu: GpuInfo | None, ladders: Iterable[Ladder]
) -> Standing | None:
    """Use the first of ``ladders`` for this GPU model that has a size in common with the cases.

    Compare ratios to the baseline, not speeds: a GPU that runs slower today slows both. The next
    rung is the first that is faster. Traps are slower than earlier rungs, so the rung below is the
    fastest rung before the next one, not its neighbour.
    """
    if gpu is None:
        return None
    timed = [
        (case, case.timing)
        for case in cases
        if case.verdict is Verdict.AC and case.timing and case.timing.runs
    ]
    timed.sort(key=lambda pair: -pair[0].amount)
    for ladder in ladders:
        if ladder.gpu is None or ladder.gpu.name != gpu.name:
            continue
        for case, timing in timed:
            if case.size in ladder.sizes:
                return _place(ladder, case.size, timing)
    return None


def _place(ladder: Ladder, size: Dims, timing: Timing) -> Standing:
    steps = ladder.steps
    speeds = [step.at(size) for step in steps]
    faster = [i for i, speed in enumerate(speeds) if speed and speed.ratio > timing.scored_ratio]
    end = faster[0] if faster else len(steps)
    slower = [(speed.ratio, i) for i, speed in enumerate(speeds[:end]) if speed]
    below = max(slower)[1] if slower else None
    first = 0 if below is None else below + 1
    ahead = range(first, end + 1) if faster else range(0)
    return Standing(
        size=size,
        ratio=timing.scored_ratio,
        rungs=sum(speed is not None for speed in speeds),
        below=None if below is None else _rung(steps[below], speeds[below]),
        ahead=tuple(_rung(steps[i], speeds[i]) for i in ahead),
        measured=ladder.created,
    )


def _rung(step: Step, speed: Speed | None) -> StandingRung:
    return StandingRung(
        number=step.rung.number,
        name=step.rung.name,
        title=step.rung.title,
        trap=step.rung.trap,
        changed=step.rung.changed,
        speed=speed.rate if speed else None,
        ratio=speed.ratio if speed else None,
    )
