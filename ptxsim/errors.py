"""Why the simulator does not run something.

RefusedProgram   the fault is in the PTX or the plan; ``reason`` says what kind of fault
EngineError      the simulator itself failed, or its installation is broken
"""

from __future__ import annotations

from enum import Enum

from ptxsim.findings.finding import Finding
from ptxsim.message import Message, verbatim
from ptxsim.records import Place


class Reason(Enum):
    UNREADABLE = "PTX that the reader does not accept, though nvcc wrote it"
    ASSEMBLY = "PTX that the reader does not accept, in a module with inline assembly"
    TAKEN_NAME = "a function with the name of one that CUDA provides"
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
        self.message = message if isinstance(message, Message) else verbatim(message)
        self.findings = findings
        self.place = place


class EngineError(Exception):
    pass
