"""Findings: what the grader says about the student's code."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ptxsim import findings as simulator
from ptxsim.findings import Remark, Severity
from ptxsim.findings import kernel_name as kernel_name
from ptxsim.plan import Place
from ptxsim.text import Message, phrase, recognised


class Kind(str, Enum):
    """Subject of a finding: the simulator's kinds and the grader's own."""

    OUT_OF_BOUNDS = simulator.Kind.OUT_OF_BOUNDS.value
    MISALIGNED = simulator.Kind.MISALIGNED.value
    RACE = simulator.Kind.RACE.value
    UNINITIALIZED_READ = simulator.Kind.UNINITIALIZED_READ.value
    BARRIER_DIVERGENCE = simulator.Kind.BARRIER_DIVERGENCE.value
    ENDLESS_LOOP = simulator.Kind.ENDLESS_LOOP.value
    TRAP = simulator.Kind.TRAP.value
    ORDER = simulator.Kind.ORDER.value
    TENSOR_CORE = simulator.Kind.TENSOR_CORE.value
    UNSUPPORTED = simulator.Kind.UNSUPPORTED.value
    HINT = simulator.Kind.HINT.value  # what may be why elements are wrong

    FORBIDDEN_CALL = "forbidden-call"  # by host code
    BAD_LAUNCH = "bad-launch"
    REFUSED_CALL = "refused-call"  # by CUDA, and the host code went on
    HOST_CRASH = "host-crash"
    INPUT_MODIFIED = "input-modified"
    CANARY = "canary"  # something was written just outside an allocation
    IMPOSSIBLE_TIME = "impossible-time"
    UNTIMED_WORK = "untimed-work"
    RELOCATED = "relocated"  # the driver did not give the recorded addresses
    LIBRARY = "library"  # a library's kernel does the work
    CALLS_DIFFER = "calls-differ"  # the third call of run_custom does what the second did not
    CHECKS_DIFFER = "checks-differ"  # the host finds wrong what the GPU's comparison let pass
    BOUND_EXCEEDED = "bound-exceeded"  # a measured speed; the model is wrong
    SECOND_BUILD = "second-build"  # it was not looked at
    STATE_LEFT = "state-left"  # a call is wrong because of what the one before it left behind


class Finding(Remark):
    """One remark about the student's code, with its place, in the submission where possible."""

    kind: Kind

    @staticmethod
    def at(
        place: Place | None, kind: Kind, severity: Severity, message: Message, **more: Any
    ) -> Finding:
        """The finding with the place, if it is known."""
        file, line = (place.file, place.line) if place else (None, None)
        return Finding(kind=kind, severity=severity, message=message, file=file, line=line, **more)

    @property
    def subject(self) -> tuple[Kind, str | None, int | None]:
        """Kind and line, in which two findings agree that say the same."""
        return self.kind, self.file, self.line


def wrong_elements(wrong: int, total: int) -> Message:
    if total == 1:
        return phrase("the one element is wrong")
    return phrase("{wrong} of {total} elements are wrong", wrong=wrong, total=total)


_ELEMENT = phrase("{operand}[row {row}, column {column}]")


def element_words(element: str) -> Message:
    """An element as operands name it: "A[row 3, column 5]"."""
    return recognised(element, [_ELEMENT])


# In English they are those that documents hold.
def kind_words(kind: Kind) -> Message:
    return Message(text=kind.value)


def severity_words(severity: Severity) -> Message:
    return Message(text=severity.value)
