"""What one simulated call may take, and what it came to."""

from __future__ import annotations

from dataclasses import dataclass

from ptxsim.findings.finding import Finding, LineCount


@dataclass(frozen=True)
class SimLimits:
    seconds: float = 10.0  # CPU time of all launches of one plan
    steps: int | None = None  # basic blocks that warps may enter; None: ample for the size
    bytes: int = 1 << 36  # of allocations and variables
    # For every launch, the set-up's first: blocks that the GPU holds at a time. (): not known.
    resident: tuple[int, ...] = ()


@dataclass(frozen=True)
class SimOutcome:
    findings: tuple[Finding, ...]
    lines: tuple[LineCount, ...]
    stopped: str | None  # "time": endless loop or limit; "deadlock": a barrier nobody completes
    seconds: float  # wall
    printed: str  # what device printf wrote
    changed: tuple[str, ...] = ()  # what lives on and is not as the call found it, by its name
