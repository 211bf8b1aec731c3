"""What allocating, freeing and waiting in every call cost, as measured."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from grader.model import (
    Advice,
    Allocate,
    CaseResult,
    Explanation,
    Free,
    Message,
    Operation,
    Plan,
    SymbolWrite,
    Synchronise,
    Timing,
    Write,
    enumerated,
    phrase,
)

_NOTICED = 0.02  # of the time of a call


def with_host_calls(
    why: Explanation, plans: Iterable[Plan], cases: Iterable[CaseResult]
) -> Explanation:
    """``why`` with advice on the host calls of the size it explains, if they cost much there."""
    plan = next((plan for plan in plans if plan.size.dims == why.size), None)
    timing = next((each.timing for each in cases if each.size == why.size), None)
    said = _advice(plan, timing) if plan and timing else None
    return msgspec.structs.replace(why, advice=(said, *why.advice)) if said else why


def _advice(plan: Plan, timing: Timing) -> Advice | None:
    device, host = timing.device_ms, timing.host_ms
    if not device or not host or host < _NOTICED * (device + host):
        return None
    without = timing.ratio * (device + host) / device
    message = phrase(
        "every call {calls}, which takes {host:.3g} ms on top of {device:.3g} ms for its kernels "
        "and copies; {remedy}: the ratio would be about {without:.2f} instead of {ratio:.2f}",
        calls=_listed(plan),
        host=host,
        device=device,
        remedy=_remedy(plan),
        without=without,
        ratio=timing.ratio,
    )
    at = next((each.place for each in plan.operations if each.place and _of_host(each)), None)
    return Advice(
        idea="host_calls",
        rung=None,
        message=message,
        file=at.file if at else None,
        line=at.line if at else None,
        gain=None,
    )


def _listed(plan: Plan) -> Message:
    """``allocates 2×, frees 2× and waits for the device 1×``."""
    allocates = sum(isinstance(each, Allocate) for each in plan.operations)
    frees = sum(isinstance(each, Free) for each in plan.operations)
    waits = sum(map(_only_waits, plan.operations))
    said = (
        phrase("allocates {times}×", times=allocates),
        phrase("frees {times}×", times=frees),
        phrase("waits for the device {times}×", times=waits),
    )
    return enumerated(each for each in said if each.args["times"])


def _remedy(plan: Plan) -> Message:
    if any(isinstance(each, Allocate | Free) for each in plan.operations):
        return phrase(
            "keep the memory in a static pointer from call to call, and allocate again only when a "
            "call needs more"
        )
    return phrase("leave the waiting to the caller")


def _of_host(operation: Operation) -> bool:
    return isinstance(operation, Allocate | Free) or _only_waits(operation)


def _only_waits(operation: Operation) -> bool:
    blocks = isinstance(operation, SymbolWrite | Write) and operation.blocking
    return blocks or isinstance(operation, Synchronise)
