"""The operations of a plan as steps of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from grader.backends.gpu.calling import Step, StepKind
from grader.model import (
    Allocate,
    Copy,
    Free,
    Launch,
    Memset,
    Operation,
    Plan,
    SymbolWrite,
    Synchronise,
    Write,
)

HOST = (Allocate, Free, Synchronise)  # work of the host alone


def steps_of(
    plan: Plan,
    operations: Sequence[Operation],
    places: Mapping[str, int],
    function: Callable[[str], int],
    *,
    host: bool,
) -> list[Step]:
    """The steps of ``operations``, which belong to ``plan``.

    places: of variables, in the table of addresses. function: the handle of a kernel. host: with
    what only the host does; without it every allocation is expected to be there. The first of them
    never begins before what the judge launched has ended.
    """
    steps = [
        _step(plan, operation, places, function, host)
        for operation in operations
        if host or not isinstance(operation, HOST)
    ]
    return [msgspec.structs.replace(step, programmatic=False) for step in steps[:1]] + steps[1:]


def _step(
    plan: Plan,
    operation: Operation,
    places: Mapping[str, int],
    function: Callable[[str], int],
    host: bool,
) -> Step:
    match operation:
        case Launch():
            return Step(
                kind=StepKind.LAUNCH,
                function=function(operation.kernel),
                grid=operation.grid,
                block=operation.block,
                shared=operation.shared_bytes,
                data=operation.params,
                arguments=operation.arguments,
                pointers=operation.pointers,
                flag=operation.cooperative,
                programmatic=operation.programmatic,
                cluster=operation.cluster,
            )
        case Memset():
            return Step(
                kind=StepKind.MEMSET,
                target=operation.allocation,
                target_delta=operation.delta,
                value=operation.value,
                size=operation.size,
            )
        case Copy():
            return Step(
                kind=StepKind.COPY,
                target=operation.target,
                target_delta=operation.target_delta,
                source=operation.source,
                source_delta=operation.source_delta,
                size=operation.size,
                rows=operation.rows,
                source_pitch=operation.source_pitch,
                target_pitch=operation.target_pitch,
            )
        case SymbolWrite():
            return Step(
                kind=StepKind.WRITE,
                target=places[operation.symbol],
                target_delta=operation.delta,
                data=operation.data,
                pointers=operation.pointers,
                flag=host and operation.blocking,
            )
        case Write():
            return Step(
                kind=StepKind.WRITE,
                target=operation.allocation,
                target_delta=operation.delta,
                data=operation.data,
                pointers=operation.pointers,
                flag=host and operation.blocking,
            )
        case Allocate():
            return Step(
                kind=StepKind.ALLOCATE,
                target=operation.allocation,
                size=plan.allocations[operation.allocation].size,
                flag=operation.ordered,
            )
        case Free():
            return Step(kind=StepKind.FREE, target=operation.allocation, flag=operation.ordered)
        case Synchronise():
            return Step(kind=StepKind.SYNCHRONISE)
