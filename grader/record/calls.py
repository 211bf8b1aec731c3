"""The limits of a plan, and the addresses of its allocations.

The recorder is compiled with these figures. If host code exceeds one, the recorder stops with a
message that names it. plan_check.py checks every plan against them again, whoever wrote it.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter

import msgspec

from grader.problems import Operand
from ptxsim import Entry
from ptxsim import plan as records
from ptxsim.findings import plain_name
from ptxsim.plan import LIMITS

CALLS = 3  # of run_custom that are recorded for each size
MAX_LAUNCHES = 10_000  # of one call
MAX_TRANSFERS = 10_000  # memsets, copies, symbol writes and synchronisations of one call
MAX_ALLOCATIONS = 1024  # of all calls, including A, B, C and symbols whose address was requested
MAX_REFUSED = 8  # calls that CUDA refuses and the plan tells of
MAX_PLAN_BYTES = 8 << 20  # of one call as JSON: parameters, data, every name
MAX_REPLY_BYTES = CALLS * MAX_PLAN_BYTES

# The arena lies where neither programs nor libraries are mapped and where a driver lets us map
# device memory; no likely integer equals the upper half of its addresses. Allocations are so far
# apart that an index wrong by 31 bits reaches no neighbour.
RED_ZONE = 1024  # unused bytes on either side of an allocation
FIRST_ADDRESS = 0x6A5D_0000_0000 + RED_ZONE
STRIDE = 4 << 30
ARENA_BYTES = 1 << 43
# An address this far before an allocation or past its end still counts as a pointer into it.
REACH = 1 << 30


def addresses(sizes: Iterable[int]) -> Iterator[int]:
    """The addresses of allocations of these sizes, in this order. plan.cpp computes the same."""
    at = FIRST_ADDRESS
    for size in sizes:
        yield at
        at += -(-(size + STRIDE // 2) // STRIDE) * STRIDE


def macros() -> tuple[str, ...]:
    """These figures, and CUDA's limits, as options of the recorder's compiler."""
    figures = {
        "CALLS": CALLS,
        "MAX_LAUNCHES": MAX_LAUNCHES,
        "MAX_TRANSFERS": MAX_TRANSFERS,
        "MAX_ALLOCATIONS": MAX_ALLOCATIONS,
        "MAX_REFUSED": MAX_REFUSED,
        "MAX_PLAN_BYTES": MAX_PLAN_BYTES,
        "MAX_ROWS": records.MOST_ROWS,
        "MAX_REPLY_BYTES": MAX_REPLY_BYTES,
        "FIRST_ADDRESS": FIRST_ADDRESS,
        "STRIDE": STRIDE,
        "ARENA_BYTES": ARENA_BYTES,
        "REACH": REACH,
        **LIMITS,
    }
    return tuple(f"-D{name}={value}ull" for name, value in figures.items())


# --- calls -------------------------------------------------------------------------------------

Operations = tuple[records.Operation, ...]
Pointers = tuple[records.PointerSlot, ...]


class Recorded(records.Record):
    """The recorder's output for one size: the operands and all other memory, and each call."""

    allocations: tuple[records.Allocation, ...]
    calls: tuple[Operations, Operations, Operations]
    refused: tuple[records.RefusedCall, ...] = ()


def assembled(
    recorded: Recorded,
    size: records.Size,
    operands: Sequence[Operand],
    variables: Sequence[str],
    entries: Mapping[str, Entry],
) -> records.Plan:
    """The plan of three calls; ``variables`` are the build's __device__ variables, ``entries`` its
    kernels. The recorder may have been deceived: nothing here relies on an index."""
    first, second, third = recorded.calls
    calls = _Comparison(recorded, entries)
    calls_differ = calls.difference(1)
    made = {o.allocation for o in first if isinstance(o, records.Allocate)}
    freed = {o.allocation for o in first if isinstance(o, records.Free)}
    operations, setup = first, Operations()
    end = _first_made(second)  # of the allocations that the plan needs
    if calls_differ:
        wait = (records.Synchronise(),) if any(each.after is not None for each in second) else ()
        operations, setup, end = third, (*first, *wait, *second), None
    elif variables or made - freed or calls.difference(0):
        operations, setup, end = second, first, _first_made(third)
    return records.Plan(
        size=size,
        allocations=recorded.allocations[:end],
        operations=operations,
        setup=setup,
        inputs=sum(each.given for each in operands),
        outputs=sum(each.role == "out" for each in operands),
        refused=recorded.refused[:MAX_REFUSED],
        calls_differ=calls_differ,
        variables=tuple(variables),
    )


def _first_made(operations: Operations) -> int | None:
    return next((max(o.allocation, 0) for o in operations if isinstance(o, records.Allocate)), None)


class _Comparison:
    def __init__(self, recorded: Recorded, entries: Mapping[str, Entry]) -> None:
        self._calls, self._memory = recorded.calls, recorded.allocations
        self._addresses = [each.address for each in self._memory]
        self._made = {  # of each allocation the call that made it, and which of that call's it is
            o.allocation: (call, place)
            for call, own in enumerate(self._calls)
            for place, o in enumerate(o for o in own if isinstance(o, records.Allocate))
        }
        self._entries = entries

    def difference(self, call: int) -> str:
        """How call ``call`` and the next one differ, in a few words; "" when they do not."""
        (before, one), (after, other) = list(zip(_ORDINALS, self._calls, strict=True))[call:][:2]
        for place, (mine, theirs) in enumerate(zip(one, other, strict=False)):
            if not self._same(mine, theirs):
                what = _in_words(mine), _in_words(theirs)
                how = "with other values" if what[0] == what[1] else f"and then {what[1]}"
                return f"step {place + 1} of the {before} call is {what[0]}, {how} in the {after}"
        if len(one) != len(other):
            return f"the {before} call has {len(one)} steps and the {after} {len(other)}"
        return ""

    def _same(self, one: records.Operation, other: records.Operation) -> bool:
        """Whether two operations agree, apart from the lines that they stand in."""
        if type(one) is not type(other):
            return False
        if isinstance(one, records.Launch) and isinstance(other, records.Launch):
            one, other = self._as_read(one), self._as_read(other)
        for name in one.__struct_fields__:
            mine, theirs = getattr(one, name), getattr(other, name)
            if name in ("allocation", "source", "target"):
                same = self._same_place(mine, theirs)
            elif name == "pointers":
                data = "params" if isinstance(one, records.Launch) else "data"
                same = self._same_bytes(mine, theirs, getattr(one, data), getattr(other, data))
            else:
                same = name in ("params", "data", "frames") or mine == theirs
            if not same:
                return False
        return True

    def _as_read(self, launch: records.Launch) -> records.Launch:
        """The launch without what its kernel never reads of its parameters. That may be anything:
        host code leaves the padding of a struct as it finds it."""
        entry, params = self._entries.get(launch.kernel), bytearray(launch.params)
        unread = entry.unread if entry else ()
        for first, end in unread:
            params[first:end] = bytes(len(params[first:end]))
        pointers = tuple(
            slot
            for slot in launch.pointers
            if not (before := bisect_right(unread, slot.offset, key=itemgetter(0)))
            or slot.offset > unread[before - 1][1] - _POINTER
        )
        return msgspec.structs.replace(launch, params=bytes(params), pointers=pointers)

    def _same_bytes(self, ours: Pointers, others: Pointers, mine: bytes, theirs: bytes) -> bool:
        """Whether parameters agree, apart from the addresses of corresponding allocations."""
        return (
            len(ours) == len(others)
            and all(
                (slot.offset, slot.delta) == (match.offset, match.delta)
                and self._same_place(slot.allocation, match.allocation)
                for slot, match in zip(ours, others, strict=True)
            )
            and self._same_but_for_freed(_without(mine, ours), _without(theirs, others))
        )

    def _same_but_for_freed(self, mine: bytes, theirs: bytes) -> bool:
        """Whether bytes agree, apart from addresses in corresponding allocations that were freed:
        the recorder notes no pointers to those."""
        at, end = 0, len(mine)
        if end != len(theirs):
            return False
        while (differs := next((i for i in range(at, end) if mine[i] != theirs[i]), end)) < end:
            starts = range(max(at, differs - _POINTER + 1), min(differs, end - _POINTER) + 1)
            start = next((each for each in starts if self._same_address(mine, theirs, each)), None)
            if start is None:
                return False
            at = start + _POINTER
        return True

    def _same_address(self, mine: bytes, theirs: bytes, start: int) -> bool:
        """Whether an address stands there, in its own one of two corresponding allocations."""
        one, other = self._place(mine, start), self._place(theirs, start)
        if one is None or other is None or one[1] != other[1]:
            return False
        return one[0] in self._made and self._same_place(one[0], other[0])

    def _place(self, data: bytes, start: int) -> tuple[int, int] | None:
        """The allocation that an address lies in, and how far from its start."""
        address = int.from_bytes(data[start : start + _POINTER], "little")
        index = bisect_right(self._addresses, address) - 1
        delta = address - self._addresses[index] if index >= 0 else -1
        return (index, delta) if 0 <= delta <= self._memory[index].size else None

    def _same_place(self, one: int, other: int) -> bool:
        """Whether two calls mean the same allocation, or each the same one of its own."""
        if one == other:
            return True
        call, place = self._made.get(one, (None, 0))
        return call is not None and self._made.get(other) == (call + 1, place)


_ORDINALS = ("first", "second", "third")
_POINTER = 8  # bytes


def _without(data: bytes, pointers: Pointers) -> bytes:
    blank = bytearray(data)
    for slot in pointers:
        if 0 <= slot.offset < len(blank):
            end = min(slot.offset + _POINTER, len(blank))
            blank[slot.offset : end] = bytes(end - slot.offset)
    return bytes(blank)


def _in_words(operation: records.Operation) -> str:
    match operation:
        case records.Launch(kernel=kernel, grid=grid, block=block):
            return f"a launch of {plain_name(kernel)} with grid {grid} and block {block}"
        case records.Memset(size=size):
            return f"a memset of {size} bytes"
        case records.Copy(size=size):
            return f"a copy of {size} bytes"
        case records.SymbolWrite(symbol=symbol):
            return f"a copy to {plain_name(symbol)}"
        case records.Write(data=data):
            return f"a copy of {len(data)} bytes from the host"
        case records.Allocate():
            return "an allocation"
        case records.Free():
            return "freeing an allocation"
        case records.Synchronise():
            return "a synchronisation"
