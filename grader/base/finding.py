"""Findings: what the grader says about the student's code."""

from enum import Enum

from ptxsim import findings as simulator
from ptxsim.findings import Remark, Severity
from ptxsim.findings import kernel_name as kernel_name
from ptxsim.text import Message, counted, phrase, recognised


class Kind(str, Enum):
    """Subject of a finding: the simulator's kinds and the grader's own."""

    OUT_OF_BOUNDS = simulator.FindingKind.OUT_OF_BOUNDS.value
    MISALIGNED = simulator.FindingKind.MISALIGNED.value
    RACE = simulator.FindingKind.RACE.value
    UNINITIALIZED_READ = simulator.FindingKind.UNINITIALIZED_READ.value
    BARRIER_DIVERGENCE = simulator.FindingKind.BARRIER_DIVERGENCE.value
    ENDLESS_LOOP = simulator.FindingKind.ENDLESS_LOOP.value
    TRAP = simulator.FindingKind.TRAP.value
    ORDER = simulator.FindingKind.ORDER.value
    TENSOR_CORE = simulator.FindingKind.TENSOR_CORE.value
    UNSUPPORTED = simulator.FindingKind.UNSUPPORTED.value
    HINT = simulator.FindingKind.HINT.value  # what may be why elements are wrong

    HOST_ACCESS = "host-access"  # a program's host code touched device memory
    FAILED_CALL = "failed-call"  # of CUDA's, by a program
    STOPPED = "stopped"  # a program's kernel took too long
    LEAK = "leak"  # a program never frees it
    OTHER = "other"  # that ptxsim found in a program

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
    IDLE_BLOCKS = "idle-blocks"  # most blocks of a launch store nothing
    STATE_LEFT = "state-left"  # a call is wrong because of what the one before it left behind


Finding = Remark[Kind]  # about the student's code; its place is in the submission where possible


def wrong_elements(wrong: int, total: int) -> Message:
    if total == 1:
        return phrase("the one element is wrong")
    return counted(
        "{count} of {total} elements is wrong",
        "{count} of {total} elements are wrong",
        wrong,
        total=total,
    )


_ELEMENT = phrase("{operand}[row {row}, column {column}]")


def element_words(element: str) -> Message:
    """An element as operands name it: "A[row 3, column 5]"."""
    return recognised(element, [_ELEMENT])


# In English they are those that documents hold.
def kind_words(kind: Kind) -> Message:
    return Message(text=kind.value)


def severity_words(severity: Severity) -> Message:
    return Message(text=severity.value)
