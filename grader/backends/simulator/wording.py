"""What the simulator saw or rejected → findings and messages for students."""

from __future__ import annotations

from collections.abc import Sequence

from grader.backends.simulator.event_scene import EventScene, byte_count, line_of
from grader.backends.simulator.event_sentences import event_sentence
from grader.model import Finding, Kind, verbatim
from ptxsim.errors import Reason, RefusedProgram
from ptxsim.findings import finding as simulator
from ptxsim.findings.finding import Crossing, Severity
from ptxsim.findings.names import plain_name
from ptxsim.records import Allocate, Copy, Free, Launch, Memset, Operation, Place, SymbolWrite

_REFUSALS = {
    Reason.UNREADABLE: "the grader cannot read what nvcc made of this: {}",
    Reason.ASSEMBLY: "the grader cannot read the PTX that inline assembly makes here ({}); write "
    "plain instructions and declarations, as nvcc itself does",
    Reason.TAKEN_NAME: "{}; give yours another name",
    Reason.UNSUPPORTED: "{}; grade it on a GPU",
    Reason.TOO_LARGE: "{}; grade it on a GPU",
    Reason.UNSOUND: "{}",
    Reason.WRONG_PLAN: "the recorded launches do not fit the program: {}",
}


def worded(findings: Sequence[simulator.Finding], gpu: str = "") -> tuple[Finding, ...]:
    """gpu: that more blocks wait for each other than it holds, where one does."""
    return tuple(
        Finding(
            kind=Kind(seen.kind.value),
            severity=seen.severity,
            message=verbatim(sentence(seen, gpu)),
            file=seen.place.file if seen.place else None,
            line=seen.place.line if seen.place else None,
            block=seen.block,
            thread=seen.thread,
            count=seen.count,
        )
        for seen in findings
    )


def refusal_worded(refusal: RefusedProgram) -> tuple[str, tuple[Finding, ...]]:
    """The message for a rejected program, and its findings."""
    message = _REFUSALS[refusal.reason].format(refusal.message)
    place = f"{refusal.place.file}:{refusal.place.line}" if refusal.place else ""
    findings = worded(refusal.findings)
    if refusal.reason is Reason.ASSEMBLY:
        own = Finding(
            kind=Kind.UNSUPPORTED,
            severity=Severity.ERROR,
            message=verbatim(message),
            file=refusal.place.file if refusal.place else None,
            line=refusal.place.line if refusal.place else None,
        )
        findings = (*findings, own)
    return f"{place}: {message}" if place else message, findings


def sentence(seen: simulator.Finding, gpu: str = "") -> str:
    if seen.streams is not None:
        return _stream_race(seen.streams, seen.place)
    if seen.event is None:
        tensor_core = seen.kind is simulator.Kind.TENSOR_CORE
        return f"{seen.text} runs on tensor cores" if tensor_core else seen.text
    return event_sentence(seen.event, EventScene(seen, gpu))


def _stream_race(seen: Crossing, shown: Place | None) -> str:
    first, second = _operation_at(seen.first, shown), _operation_at(seen.second, shown)
    return (
        f"{first} on one stream and {second} on another use {seen.name}, and nothing orders them: "
        f"record an event behind the one and let the other's stream wait for it"
    )


def _operation_at(operation: Operation, shown: Place | None) -> str:
    at = f" at {line_of(operation.place, shown)}" if operation.place else ""
    return _operation(operation) + at


def _operation(operation: Operation) -> str:
    match operation:
        case Launch(kernel=kernel):
            return f"kernel `{plain_name(kernel)[:80]}`"
        case Memset(size=size):
            return f"the memset of {byte_count(size)}"
        case Copy(size=size):
            return f"the copy of {byte_count(size)}"
        case SymbolWrite(symbol=symbol):
            return f"the copy to {plain_name(symbol)[:80]}"
        case Allocate():
            return "the allocation"
        case Free():
            return "freeing"
    return "an operation"
