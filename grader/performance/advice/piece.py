from __future__ import annotations

from grader.model import Advice
from grader.performance.facts import Facts
from grader.submission.provided import provided

BLOCKED = 16  # elements per thread; below that, how tiles are loaded matters little


def advice(facts: Facts, idea: str, message: str, *bases: str, gain: float | None = None) -> Advice:
    found = (path.name for at in provided("reference") for path in at.glob(f"[0-9]*_{idea}"))
    rung = next(found, None)
    file, line = facts.where(*bases)
    return Advice(idea=idea, rung=rung, message=message, file=file, line=line, gain=gain)
