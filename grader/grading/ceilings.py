"""What a rung can reach at most on GPUs that nobody timed it on: from machine code and counts."""

from __future__ import annotations

from grader.errors import Rejected
from grader.grading.preparing import Bench, explained, prepared
from grader.hardware import gpus
from grader.ladder.document import Ceiling
from grader.model import Submission

_UNTIMED = ("A100 80GB PCIe", "RTX 2080 Ti")  # the lab's own; a course has one of them


def ceilings(submission: Submission, bench: Bench) -> tuple[Ceiling, ...]:
    """At the lab's largest timed size, for each GPU that the submission compiles for."""
    size = max((case.size for case in bench.lab.performance), key=bench.lab.problem.work)
    found = []
    for card in gpus.known():
        if card.name not in _UNTIMED:
            continue
        arch = f"sm_{card.capability}"
        try:
            why = explained(prepared(submission, [size], bench, arch), bench, card)
        except Rejected:
            continue
        found += [
            Ceiling(gpu=card.name, arch=arch, size=size.dims, speed=bound.ceiling)
            for bound in why.bounds
        ]
    return tuple(found)
