"""Three recorded calls of run_custom → one plan: what runs once, and what every later call does.

The third call shows whether the second is what all later calls do. Allocations get new addresses in
every call, so two calls are compared without the addresses of what each of them allocates.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

import msgspec

from grader.model import (
    Allocate,
    Allocation,
    Copy,
    Free,
    Launch,
    Memset,
    Operation,
    Plan,
    Record,
    Size,
    SymbolWrite,
    Synchronise,
    Write,
)
from grader.problems.operands import Operand
from ptxsim.findings.names import plain_name
from ptxsim.frontend.interface import Entry

Operations = tuple[Operation, ...]


class Given(Record):
    """What run_custom was given at one size: the inputs, then the outputs."""

    size: Size
    operands: tuple[Operand, ...]


class Recorded(Record):
    """What the recorder wrote for one size: the operands and all other memory, and each call."""

    allocations: tuple[Allocation, ...]
    calls: tuple[Operations, Operations, Operations]


def assembled(
    recorded: Recorded, given: Given, variables: Sequence[str], entries: Mapping[str, Entry]
) -> Plan:
    """The plan of three calls; ``variables`` are the build's __device__ variables, ``entries`` its
    kernels.

    The recorder may have been deceived: nothing here relies on an index.
    """
    first, second, third = recorded.calls
    made = {
        operation.allocation: (call, place)
        for call, operations in enumerate(recorded.calls)
        for place, operation in enumerate(o for o in operations if isinstance(o, Allocate))
    }
    same = _Comparison(recorded.allocations, made, entries)
    unsettled = same.difference(second, third, 1)
    if unsettled:
        setup = (*first, *_wait_before(second), *second)
        plan = _plan(recorded, given, third, setup, before=None)
        plan = msgspec.structs.replace(plan, unsettled=unsettled)
    elif variables or _left(first) or same.difference(first, second, 0):
        plan = _plan(recorded, given, second, first, before=_first_made(third))
    else:
        return _plan(recorded, given, first, (), before=_first_made(second))
    return msgspec.structs.replace(plan, variables=tuple(variables))


def _plan(
    recorded: Recorded,
    given: Given,
    operations: Operations,
    setup: Operations,
    before: int | None,
) -> Plan:
    """A plan with the allocations ``before`` an index."""
    return Plan(
        size=given.size,
        allocations=recorded.allocations[:before],
        operations=operations,
        setup=setup,
        inputs=sum(each.role == "in" for each in given.operands),
        outputs=sum(each.role == "out" for each in given.operands),
    )


def _wait_before(call: Operations) -> Operations:
    """What keeps an operation of a call that comes after nothing in it behind the call before."""
    return (Synchronise(),) if any(each.after is not None for each in call) else ()


def _first_made(operations: Operations) -> int | None:
    return next((max(o.allocation, 0) for o in operations if isinstance(o, Allocate)), None)


def _left(operations: Operations) -> set[int]:
    """The allocations that a call makes and does not free."""
    made = {o.allocation for o in operations if isinstance(o, Allocate)}
    return made - {o.allocation for o in operations if isinstance(o, Free)}


class _Comparison:
    """made: of each allocation the call that made it, and which of that call's it is."""

    def __init__(
        self,
        memory: Sequence[Allocation],
        made: Mapping[int, tuple[int, int]],
        entries: Mapping[str, Entry],
    ) -> None:
        self._memory = memory
        self._addresses = [each.address for each in memory]
        self._made = made
        self._entries = entries

    def difference(self, one: Operations, other: Operations, call: int) -> str:
        """How call ``call`` and the next one differ, in a few words; "" when they do not."""
        before, after = _ORDINALS[call], _ORDINALS[call + 1]
        for place, (mine, theirs) in enumerate(zip(one, other, strict=False)):
            if not self._same(mine, theirs, call):
                what = _in_words(mine), _in_words(theirs)
                how = "with other values" if what[0] == what[1] else f"and then {what[1]}"
                return f"step {place + 1} of the {before} call is {what[0]}, {how} in the {after}"
        if len(one) != len(other):
            return f"the {before} call has {len(one)} steps and the {after} {len(other)}"
        return ""

    def _same(self, one: Operation, other: Operation, call: int) -> bool:
        if one.frames != other.frames:
            other = msgspec.structs.replace(other, frames=one.frames)
        match one, other:
            case (Launch(), Launch()):
                one, other = self._as_read(one), self._as_read(other)
                return self._same_bytes(one, other, one.params, other.params, call) and all(
                    getattr(one, name) == getattr(other, name)
                    for name in one.__struct_fields__
                    if name not in ("params", "pointers")
                )
            case (SymbolWrite(), SymbolWrite()):
                return self._same_bytes(one, other, one.data, other.data, call) and (
                    (one.symbol, one.delta, one.blocking, one.after)
                    == (other.symbol, other.delta, other.blocking, other.after)
                )
            case (Write(), Write()):
                return (
                    self._same_bytes(one, other, one.data, other.data, call)
                    and self._same_place(one.allocation, other.allocation, call)
                    and (one.delta, one.blocking, one.after)
                    == (other.delta, other.blocking, other.after)
                )
            case (Memset() | Allocate() | Free(), Memset() | Allocate() | Free()):
                places = self._same_place(one.allocation, other.allocation, call)
                return places and one == msgspec.structs.replace(other, allocation=one.allocation)
            case (Copy(), Copy()):
                return (
                    self._same_place(one.source, other.source, call)
                    and self._same_place(one.target, other.target, call)
                    and one == msgspec.structs.replace(other, source=one.source, target=one.target)
                )
            case _:
                return one == other

    def _as_read(self, launch: Launch) -> Launch:
        """The launch without what its kernel never reads of its parameters. That may be anything:
        host code leaves the padding of a struct as it finds it."""
        entry = self._entries.get(launch.kernel)
        params, pointers = bytearray(launch.params), launch.pointers
        for first, end in entry.unread if entry else ():
            params[first:end] = bytes(len(params[first:end]))
            pointers = tuple(
                slot for slot in pointers if not first <= slot.offset <= end - _POINTER
            )
        return msgspec.structs.replace(launch, params=bytes(params), pointers=pointers)

    def _same_bytes(
        self,
        one: Launch | SymbolWrite | Write,
        other: Launch | SymbolWrite | Write,
        mine: bytes,
        theirs: bytes,
        call: int,
    ) -> bool:
        """Whether parameters agree, apart from the addresses of corresponding allocations."""
        if len(one.pointers) != len(other.pointers):
            return False
        for slot, match in zip(one.pointers, other.pointers, strict=True):
            if (slot.offset, slot.delta) != (match.offset, match.delta):
                return False
            if not self._same_place(slot.allocation, match.allocation, call):
                return False
        return self._same_but_for_freed(_without(mine, one), _without(theirs, other), call)

    def _same_but_for_freed(self, mine: bytes, theirs: bytes, call: int) -> bool:
        """Whether bytes agree, apart from addresses in corresponding allocations that were freed:
        the recorder notes no pointers to those."""
        at = 0
        while (differs := _first_difference(mine, theirs, at)) is not None:
            starts = range(max(at, differs - _POINTER + 1), differs + 1)
            found = (
                at
                for at in starts
                if self._same_address(mine[at : at + _POINTER], theirs[at : at + _POINTER], call)
            )
            start = next(found, None)
            if start is None:
                return False
            at = start + _POINTER
        return len(mine) == len(theirs)

    def _same_address(self, mine: bytes, theirs: bytes, call: int) -> bool:
        """Whether each is an address in its own one of two corresponding allocations."""
        if min(len(mine), len(theirs)) < _POINTER:
            return False
        one, other = self._place(mine), self._place(theirs)
        if one is None or other is None or one[1] != other[1]:
            return False
        return one[0] in self._made and self._same_place(one[0], other[0], call)

    def _place(self, data: bytes) -> tuple[int, int] | None:
        """The allocation that an address lies in, and how far from its start."""
        address = int.from_bytes(data, "little")
        index = bisect_right(self._addresses, address) - 1
        if index < 0 or address - self._memory[index].address > self._memory[index].size:
            return None
        return index, address - self._memory[index].address

    def _same_place(self, one: int, other: int, call: int) -> bool:
        """Whether two calls mean the same allocation, or each the same one of its own."""
        if one == other:
            return True
        if one not in self._made or other not in self._made:
            return False
        (mine, place), (theirs, match) = self._made[one], self._made[other]
        return place == match and call - mine == call + 1 - theirs


_ORDINALS = ("first", "second", "third")


_POINTER = 8  # bytes
_NAME = 4096  # characters of a name that are read: a forged one may have millions


def _first_difference(one: bytes, other: bytes, start: int) -> int | None:
    places = range(start, min(len(one), len(other)))
    return next((at for at in places if one[at] != other[at]), None)


def _without(data: bytes, holder: Launch | SymbolWrite | Write) -> bytes:
    """``data`` without its pointers."""
    blank = bytearray(data)
    for slot in holder.pointers:
        if 0 <= slot.offset < len(blank):
            blank[slot.offset : slot.offset + 8] = bytes(min(8, len(blank) - slot.offset))
    return bytes(blank)


def _in_words(operation: Operation) -> str:
    match operation:
        case Launch(kernel=kernel, grid=grid, block=block):
            return f"a launch of {_plain(kernel)} with grid {grid} and block {block}"
        case Memset(size=size):
            return f"a memset of {size} bytes"
        case Copy(size=size):
            return f"a copy of {size} bytes"
        case SymbolWrite(symbol=symbol):
            return f"a copy to {_plain(symbol)}"
        case Write(data=data):
            return f"a copy of {len(data)} bytes from the host"
        case Allocate():
            return "an allocation"
        case Free():
            return "freeing an allocation"
        case Synchronise():
            return "a synchronisation"


def _plain(name: str) -> str:
    return plain_name(name[:_NAME])[:80]
