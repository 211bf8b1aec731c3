"""What the simulator saw or rejected → findings and messages for students."""

from __future__ import annotations

from collections.abc import Sequence

from grader.backends.simulator.event_scene import EventScene, byte_count, line_of
from grader.backends.simulator.event_sentences import event_sentence
from grader.model import Finding, Kind, Message, phrase
from ptxsim.errors import Reason, RefusedProgram
from ptxsim.findings import finding as simulator
from ptxsim.findings.finding import Crossing, Severity
from ptxsim.findings.names import plain_name
from ptxsim.records import (
    Allocate,
    Copy,
    Free,
    Launch,
    Memset,
    Operation,
    Place,
    SymbolWrite,
    Write,
)

_REFUSALS = {
    Reason.UNREADABLE: phrase("the grader cannot read what nvcc made of this: {why}"),
    Reason.ASSEMBLY: phrase(
        "the grader cannot read the PTX that inline assembly makes here ({why}); write plain "
        "instructions and declarations, as nvcc itself does"
    ),
    Reason.TAKEN_NAME: phrase("{why}; give yours another name"),
    Reason.UNSUPPORTED: phrase("{why}; grade it on a GPU"),
    Reason.TOO_LARGE: phrase("{why}; grade it on a GPU"),
    Reason.UNSOUND: phrase("{why}"),
    Reason.WRONG_PLAN: phrase("the recorded launches do not fit the program: {why}"),
}


def worded(findings: Sequence[simulator.Finding], gpu: str = "") -> tuple[Finding, ...]:
    """gpu: that more blocks wait for each other than it holds, where one does."""
    return tuple(
        Finding(
            kind=Kind(seen.kind.value),
            severity=seen.severity,
            message=sentence(seen, gpu),
            file=seen.place.file if seen.place else None,
            line=seen.place.line if seen.place else None,
            block=seen.block,
            thread=seen.thread,
            count=seen.count,
        )
        for seen in findings
    )


def refusal_worded(refusal: RefusedProgram) -> tuple[Message, tuple[Finding, ...]]:
    """The message for a rejected program, and its findings."""
    message = _REFUSALS[refusal.reason].given(why=refusal.message)
    place = f"{refusal.place.file}:{refusal.place.line}" if refusal.place else ""
    findings = worded(refusal.findings)
    if refusal.reason is Reason.ASSEMBLY:
        own = Finding(
            kind=Kind.UNSUPPORTED,
            severity=Severity.ERROR,
            message=message,
            file=refusal.place.file if refusal.place else None,
            line=refusal.place.line if refusal.place else None,
        )
        findings = (*findings, own)
    if place:
        message = phrase("{place}: {what}", place=place, what=message)
    return message, findings


def sentence(seen: simulator.Finding, gpu: str = "") -> Message:
    if seen.streams is not None:
        return _stream_race(seen.streams, seen.place)
    if seen.event is None:
        if seen.kind is simulator.Kind.TENSOR_CORE:
            return phrase("{instruction} runs on tensor cores", instruction=seen.text)
        return seen.text
    return event_sentence(seen.event, EventScene(seen, gpu))


def _stream_race(seen: Crossing, shown: Place | None) -> Message:
    first, second = _operation_at(seen.first, shown), _operation_at(seen.second, shown)
    return phrase(
        "{first} on one stream and {second} on another use {name}, and nothing orders them: record "
        "an event behind the one and let the other's stream wait for it",
        first=first,
        second=second,
        name=seen.name,
    )


def _operation_at(operation: Operation, shown: Place | None) -> Message:
    what = _operation(operation)
    if not operation.place:
        return what
    return phrase("{what} at {line}", what=what, line=line_of(operation.place, shown))


def _operation(operation: Operation) -> Message:
    match operation:
        case Launch(kernel=kernel):
            return phrase("kernel `{kernel}`", kernel=plain_name(kernel)[:80])
        case Memset(size=size):
            return phrase("the memset of {bytes}", bytes=byte_count(size))
        case Copy(size=size):
            return phrase("the copy of {bytes}", bytes=byte_count(size))
        case SymbolWrite(symbol=symbol):
            return phrase("the copy to {symbol}", symbol=plain_name(symbol)[:80])
        case Write(data=data):
            return phrase("the copy of {bytes} from the host", bytes=byte_count(len(data)))
        case Allocate():
            return phrase("the allocation")
        case Free():
            return phrase("freeing")
    return phrase("an operation")
