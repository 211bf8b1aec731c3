"""Limits and outcome of one simulated call, and why the simulator does not run something.

RefusedProgram   the fault is in the PTX or the plan; ``reason`` says what kind of fault
EngineError      the simulator itself failed, or its installation is broken
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from ptxsim.findings.finding import Finding, LineCount
from ptxsim.findings.writes import ElementWrite
from ptxsim.plan.records import Launch, Place
from ptxsim.text import Message, verbatim

if TYPE_CHECKING:
    import numpy as np

    from ptxsim.findings.metrics import LineMetrics


@dataclass(frozen=True)
class SimLimits:
    seconds: float = 10.0  # CPU time of all launches of one plan
    steps: int | None = None  # basic blocks that warps may enter; None: ample for the size
    bytes: int = 1 << 36  # of allocations and variables
    # For every launch, the set-up's first: blocks that the GPU holds at a time. (): not known.
    resident: tuple[int, ...] = ()


@dataclass(frozen=True)
class LaunchedBlocks:
    """The blocks of one launch, and what came of them."""

    launch: Launch
    ended: int  # blocks that ran to their end
    idle: int  # of these, stored nothing to global memory


@dataclass(frozen=True)
class SimOutcome:
    findings: tuple[Finding, ...]
    lines: tuple[LineCount, ...]
    stopped: str | None  # "time": endless loop or limit; "deadlock": a barrier nobody completes
    seconds: float  # wall
    printed: str  # what device printf wrote
    hints: tuple[Finding, ...] = ()  # what may be why elements are wrong, if they are
    # Reads in no order with a write, where both synchronise: wrong if another order or the verified
    # values show a difference.
    early: tuple[Finding, ...] = ()
    # Whether several warps used global memory by atomic, volatile, relaxed or similar accesses.
    synchronises: bool = False
    changed: tuple[str, ...] = ()  # what lives on and is not as the call found it, by its name
    blocks: tuple[LaunchedBlocks, ...] = ()  # one for each launch, as far as they ran
    metrics: tuple[LineMetrics, ...] = ()  # where the simulator was asked for them
    # To elements that somebody watches, in order, and how many more there were.
    writes: tuple[ElementWrite, ...] = ()
    writes_left_out: int = 0
    # By allocation, where asked for: who wrote last to its cells (Machine.writers).
    writers: Mapping[int, np.ndarray] = field(default_factory=dict)


class Reason(Enum):
    UNREADABLE = "PTX that the reader does not accept, though nvcc wrote it"
    ASSEMBLY = "PTX that the reader does not accept, in a module with inline assembly"
    TAKEN_NAME = "a function with the name of one that CUDA provides"
    LONG_NAME = "a kernel or a variable whose name is longer than any that programs have"
    UNSUPPORTED = "an instruction that is not simulated"
    TOO_LARGE = "more than the simulator accepts"
    UNSOUND = "a kernel that no CUDA device would run"
    WRONG_PLAN = "a plan that does not fit the module or a CUDA device"


class RefusedProgram(Exception):  # noqa: N818 - a fact about the program, not a fault
    """message: what is wrong, without the place. findings: evidence with source lines, if any."""

    def __init__(
        self,
        reason: Reason,
        message: Message | str,
        findings: tuple[Finding, ...] = (),
        place: Place | None = None,
    ) -> None:
        super().__init__(f"{message} ({place.file}:{place.line})" if place else message)
        self.reason = reason
        self.message = verbatim(message)
        self.findings = findings
        self.place = place


class EngineError(Exception):
    pass
