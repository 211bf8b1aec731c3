"""What the simulator's grade says of the sizes that only a GPU runs.

Their launches are planned, so that a launch which no GPU of the lab can make is found here. Where
a plan has memory of its own, a few blocks of each kernel are run to see whether it is large enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from grader.backends.protocol import Progress
from grader.backends.simulator.device import CpuDevice
from grader.errors import GraderError, OutOfTime, Rejected
from grader.model import (
    NOTHING,
    Build,
    Finding,
    Message,
    Plan,
    Record,
    Severity,
    Size,
    Verdict,
    phrase,
)

# Records the plans of sizes for another architecture than the build's.
Again = Callable[[Sequence[Size], str], Sequence[Plan | Rejected]]


class Beyond(Record):
    """What is wrong at the timed sizes."""

    verdict: Verdict = Verdict.AC
    words: Message = NOTHING
    findings: tuple[Finding, ...] = ()


def look_at(
    sizes: Sequence[Size],
    plans: Sequence[Plan | Rejected],
    architectures: Sequence[str],
    again: Again,
) -> Beyond:
    """The first size whose launches cannot be made on any of the ``architectures``; the plans are
    those for the first of these."""
    for size, plan in zip(sizes, plans, strict=False):
        if not isinstance(plan, Rejected):
            continue
        others = (again([size], each) for each in architectures[1:])
        if any(isinstance(one, Plan) for found in others for one in found):
            continue
        findings = tuple(_at(size, each) for each in plan.findings)
        return Beyond(verdict=plan.verdict, words=_words(size, plan.message), findings=findings)
    return Beyond()


def probe(
    plans: Sequence[Plan | Rejected],
    build: Build,
    source_root: str,
    device: CpuDevice,
    progress: Progress,
) -> Beyond:
    """The first size at which memory that the submission allocates is left."""
    for plan in plans:
        if isinstance(plan, Rejected) or all(
            a.symbol is not None for a in plan.allocations[plan.given :]
        ):
            continue
        try:
            seen = device.probe(build, source_root, plan, progress)
        except OutOfTime:
            raise
        except GraderError as failure:  # the verdict stands, whatever cannot be looked at
            progress(f"not looked at {plan.size}:", str(failure))
            continue
        findings = tuple(_at(plan.size, each) for each in seen)
        if findings:
            first = findings[0]
            words = first.message
            if first.file:
                place = f"{first.file}:{first.line}"
                words = phrase("{place}: {what}", place=place, what=words)
            return Beyond(verdict=Verdict.RE, words=words, findings=findings)
    return Beyond()


def _at(size: Size, finding: Finding) -> Finding:
    message = _words(size, finding.message)
    return msgspec.structs.replace(finding, message=message, severity=Severity.ERROR)


def _words(size: Size, what: Message) -> Message:
    return phrase("at {size}, which a GPU times: {what}", size=str(size), what=what)
