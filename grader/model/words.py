"""Words that several rooms say in the same way."""

from __future__ import annotations

from grader.model.finding import Kind
from ptxsim.findings.finding import Severity
from ptxsim.message import Message, phrase, recognised


def wrong_elements(wrong: int, total: int) -> Message:
    """How much of an output is wrong."""
    if total == 1:
        return phrase("the one element is wrong")
    return phrase("{wrong} of {total} elements are wrong", wrong=wrong, total=total)


_ELEMENT = phrase("{operand}[row {row}, column {column}]")


def element_words(element: str) -> Message:
    """An element as operands name it: "A[row 3, column 5]"."""
    return recognised(element, [_ELEMENT])


def kind_words(kind: Kind) -> Message:
    return _KINDS[kind]


def severity_words(severity: Severity) -> Message:
    return _SEVERITIES[severity]


# In English they are those that documents hold.
_KINDS = {
    Kind.OUT_OF_BOUNDS: phrase("out-of-bounds"),
    Kind.MISALIGNED: phrase("misaligned"),
    Kind.RACE: phrase("race"),
    Kind.UNINITIALIZED_READ: phrase("uninitialized-read"),
    Kind.BARRIER_DIVERGENCE: phrase("barrier-divergence"),
    Kind.ENDLESS_LOOP: phrase("endless-loop"),
    Kind.TRAP: phrase("trap"),
    Kind.TENSOR_CORE: phrase("tensor-core"),
    Kind.UNSUPPORTED: phrase("unsupported"),
    Kind.FORBIDDEN_CALL: phrase("forbidden-call"),
    Kind.BAD_LAUNCH: phrase("bad-launch"),
    Kind.HOST_CRASH: phrase("host-crash"),
    Kind.INPUT_MODIFIED: phrase("input-modified"),
    Kind.CANARY: phrase("canary"),
    Kind.IMPOSSIBLE_TIME: phrase("impossible-time"),
    Kind.UNTIMED_WORK: phrase("untimed-work"),
    Kind.RELOCATED: phrase("relocated"),
    Kind.LIBRARY: phrase("library"),
    Kind.CALLS_DIFFER: phrase("calls-differ"),
    Kind.CHECKS_DIFFER: phrase("checks-differ"),
    Kind.STATE_LEFT: phrase("state-left"),
}
_SEVERITIES = {
    Severity.ERROR: phrase("error"),
    Severity.WARNING: phrase("warning"),
    Severity.NOTE: phrase("note"),
}
