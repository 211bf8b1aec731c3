from __future__ import annotations

from typing import Protocol

import msgspec

from grader.model import Advice, Message
from grader.performance.facts import KernelFacts
from grader.submission.provided import REFERENCE, provided

BLOCKED = 16  # elements per thread; below that, how tiles are loaded matters little


def advice(
    facts: KernelFacts, idea: str, message: Message, *bases: str, gain: float | None = None
) -> Advice:
    pattern = f"{facts.words.ladder}/[0-9]*_{idea}"
    places = ((at, path) for at in provided(REFERENCE) for path in at.glob(pattern))
    rung = min((path.relative_to(at).as_posix() for at, path in places), default=None)
    file, line = facts.where(*bases)
    return Advice(idea=idea, rung=rung, message=message, file=file, line=line, gain=gain)


class Placed(Protocol):
    """Something that the code shows at a line."""

    @property
    def file(self) -> str | None: ...

    @property
    def line(self) -> int | None: ...


def placed(said: Advice, at: Placed) -> Advice:
    """The same about the line of ``at``, where it is known."""
    if at.line is None:
        return said
    return msgspec.structs.replace(said, file=at.file, line=at.line)
