"""Why the simulator does not run something.

RefusedProgram       the PTX or the plan; ``reason`` says in which way
EngineError   a fault of the simulator's own, or a broken installation
"""

from __future__ import annotations

from enum import Enum

from ptxsim.records import Finding


class Reason(Enum):
    UNREADABLE = "nvcc wrote PTX that the reader does not know"
    ASSEMBLY = "inline assembly wrote PTX that the reader does not take"
    UNSUPPORTED = "an instruction that is not simulated"
    TOO_LARGE = "more than the simulator takes"
    UNSOUND = "a plan or kernel that no CUDA device would run"


class RefusedProgram(Exception):  # noqa: N818 - a fact about the program, not a fault
    """findings: evidence with source lines, if any."""

    def __init__(self, reason: Reason, message: str, findings: tuple[Finding, ...] = ()) -> None:
        super().__init__(message)
        self.reason = reason
        self.findings = findings


class EngineError(Exception):
    pass
