"""Checks a plan that came out of an untrusted process.

Host code shares its process with the recorder and can write anything. A plan that passes these
checks requests only what an honest run_custom could request. It fits the bounds; its names and
sizes match the build; its addresses follow the recorder's rules; and every range lies inside one
allocation. Ranges are compared by subtraction, so no sum can wrap in the C++ that reads the plan
later.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from grader.base import Gpu, KernelInfo
from grader.problems import Operand
from grader.record import calls
from grader.record.refusals import find_refusal
from ptxsim import Declarations
from ptxsim import plan as records
from ptxsim.plan import MAX_CLUSTER, REGISTER_UNIT, broken_limit

_WORK = (records.Launch, records.Memset, records.Copy)
_TRANSFERS = (records.Memset, records.Copy, records.SymbolWrite, records.Write, records.Synchronise)
_POINTER = 8
_WARP = 32
_Memory = tuple[records.Allocation, ...]


class Known(records.Record):
    """Kernels, variables and device that a plan may refer to."""

    declared: Declarations
    figures: Mapping[str, KernelInfo]  # ptxas's figures of the kernels
    target: Gpu  # that host code is told about

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that kernels can write."""
        symbols = self.declared.symbols.items()
        return tuple(name for name, symbol in symbols if symbol.space == "global")


def flaw(plan: records.Plan, operands: Sequence[Operand], known: Known) -> str | None:
    """Describe the first thing in a plan for ``operands`` that no honest plan contains, if any."""
    if not all(find_refusal(each.refused) for each in plan.refused):
        return "a refused call says nothing that the recorder says"
    return _memory_flaw(plan, operands, known) or _operations_flaw(plan, known)


def _memory_flaw(plan: records.Plan, operands: Sequence[Operand], known: Known) -> str | None:
    memory = plan.allocations
    if len(memory) > calls.MAX_ALLOCATIONS:
        return "it has too many allocations"
    if any(not 0 < a.size <= calls.ARENA_BYTES for a in memory):
        return "an allocation has an impossible size"
    if tuple(a.address for a in memory) != tuple(calls.addresses(a.size for a in memory)):
        return "an allocation is not where it belongs"
    end = calls.FIRST_ADDRESS + calls.ARENA_BYTES - calls.STRIDE
    if not all(a.size <= end - a.address for a in memory[-1:]):
        return "an allocation lies beyond the last address"
    # They are the operands, numbered workspaces and variables of the build.
    first, others = memory[: len(operands)], memory[len(operands) :]
    given = [(each.name, each.bytes, None) for each in operands]
    if [(a.name, a.size, a.symbol) for a in first] != given:
        return "the operands are not as they were given"
    workspaces = [a for a in others if a.symbol is None]
    if [a.name for a in workspaces] != [f"workspace {i + 1}" for i in range(len(workspaces))]:
        return "its workspaces are not numbered"
    symbols = [a for a in others if a.symbol is not None]
    if any(a.name != a.symbol or _extent(a.name, known) != a.size for a in symbols):
        return "a symbol is not as the build declares it"
    if len({a.symbol for a in symbols}) != len(symbols):
        return "a symbol occurs twice"
    return None


def _operations_flaw(plan: records.Plan, known: Known) -> str | None:
    if not any(isinstance(each, _WORK) for each in plan.operations):
        return "it has no launch, memset or copy"
    for operations, count in ((plan.operations, 1), (plan.setup, calls.CALLS - 1)):
        launches = sum(isinstance(each, records.Launch) for each in operations)
        if launches > count * calls.MAX_LAUNCHES:
            return "it has too many launches"
        transfers = sum(isinstance(each, _TRANSFERS) for each in operations)
        if transfers > count * calls.MAX_TRANSFERS + count - 1:  # and a wait between two calls
            return "it has too many memsets, copies, symbol writes and synchronisations"
        # Each comes after places before it, each once, the farthest first.
        orders = ((place, (*(each.after or ()), 0)) for place, each in enumerate(operations))
        if not all(place >= far > near >= 0 for place, o in orders for far, near in pairwise(o)):
            return "an operation comes after what is not before it"
        if any(
            isinstance(each, records.Launch)
            and each.programmatic
            and not isinstance(before, records.Launch)
            for before, each in pairwise((None, *operations))
        ):
            return "a programmatic launch follows no other launch"
    operations = (*plan.setup, *plan.operations)
    flaws = (_operation_flaw(each, plan.allocations, known) for each in operations)
    return next(filter(None, flaws), None) or _lifetimes_flaw(plan, known)


def _lifetimes_flaw(plan: records.Plan, known: Known) -> str | None:
    """Whether every workspace is allocated once, in order, and freed once at most."""
    workspaces = (i for i, a in enumerate(plan.allocations) if a.symbol is None and i >= plan.given)
    live: set[int] = set()
    size = 0
    for operation in (*plan.setup, *plan.operations):
        match operation:
            case records.Allocate(allocation=index):
                if index != next(workspaces, None):
                    return "an allocation is made twice, or out of order"
                live.add(index)
                size += plan.allocations[index].size
                if size > known.target.memory_bytes:
                    return "its workspaces exceed the device's memory"
            case records.Free(allocation=index):
                if index not in live:
                    return "it frees what it has not allocated"
                live.remove(index)
                size -= plan.allocations[index].size
    if next(workspaces, None) is not None:
        return "an allocation is made by none of its calls"
    return None


def _operation_flaw(operation: records.Operation, memory: _Memory, known: Known) -> str | None:
    if operation.place is not None:
        return "it names lines"
    match operation:
        case records.Launch():
            return _launch_flaw(operation, memory, known)
        case records.Memset(allocation=index, delta=delta, size=size):
            if not (0 <= operation.value <= 255 and _inside(memory, index, delta, size)):
                return "a memset leaves its allocation"
        case records.Copy():
            return _copy_flaw(operation, memory)
        case records.SymbolWrite(symbol=symbol, delta=delta, data=data):
            if not _fits(_extent(symbol, known), delta, len(data)):
                return "a symbol write leaves its symbol"
            return _pointers_flaw(operation.pointers, data, memory)
        case records.Write(allocation=index, delta=delta, data=data):
            if not _inside(memory, index, delta, len(data)):
                return "a copy from the host leaves its allocation"
            return _pointers_flaw(operation.pointers, data, memory)
    return None


def _copy_flaw(copy: records.Copy, memory: _Memory) -> str | None:
    start, end = copy.source_delta, copy.target_delta
    if copy.size < 1 or not copy.sound:
        return "a copy has impossible rows"
    if not (
        _inside(memory, copy.source, start, copy.source_span)
        and _inside(memory, copy.target, end, copy.target_span)
    ):
        return "a copy leaves its allocations"
    room = copy.source_span if start < end else copy.target_span
    if copy.source == copy.target and abs(start - end) < room:
        return "a copy overlaps itself"
    return None


def _launch_flaw(launch: records.Launch, memory: _Memory, known: Known) -> str | None:
    entry, figures = known.declared.entries.get(launch.kernel), known.figures.get(launch.kernel)
    if entry is None or figures is None:
        return "a kernel is not in the build"
    if len(launch.params) != entry.size:
        return "a launch's parameters have another size"
    if limit := broken_limit(launch):
        return f"a launch has {limit}"
    sm = known.target.multiprocessor
    threads = math.prod(launch.block)
    warps = -(-threads // _WARP)
    registers = -(-figures.registers * _WARP // REGISTER_UNIT) * REGISTER_UNIT
    if threads > entry.max_threads or warps * registers > sm.registers:
        return "a launch's block has too many threads"
    if not _fits(sm.block_shared_kib << 10, launch.shared_bytes, figures.shared_bytes):
        return "a launch asks for too much shared memory"
    if not -1 <= launch.carveout <= 100:
        return "a launch's carve-out is impossible"
    cluster = entry.cluster or launch.cluster
    own = launch.cluster in (cluster, (1, 1, 1))
    if min(cluster) < 1 or math.prod(cluster) > MAX_CLUSTER or not own:
        return "a launch's clusters are impossible"
    if any(n % of for n, of in zip(launch.grid, cluster, strict=True)):
        return "a launch's grid is no multiple of its clusters"
    if launch.cooperative:  # all blocks run at the same time; the recorder knows it more exactly
        shared = launch.shared_bytes + figures.shared_bytes
        blocks = min(
            sm.blocks,
            sm.threads // (warps * _WARP),
            sm.registers // max(warps * registers, 1),
            (sm.shared_kib << 10) // max(shared, 1),
        )
        if math.prod(launch.grid) > blocks * known.target.multiprocessors:
            return "a cooperative launch has too many blocks"
    return _pointers_flaw(launch.pointers, launch.params, memory)


def _pointers_flaw(pointers: calls.Pointers, data: bytes, memory: _Memory) -> str | None:
    free = 0
    for slot in pointers:
        if not (free <= slot.offset and _fits(len(data), slot.offset, _POINTER)):
            return "a pointer is not where it can stand"
        if not 0 <= slot.allocation < len(memory):
            return "a pointer is into no allocation"
        pointee = memory[slot.allocation]
        if not -calls.REACH <= slot.delta <= pointee.size + calls.REACH:
            return "a pointer is too far from its allocation"
        value = int.from_bytes(data[slot.offset : slot.offset + _POINTER], "little")
        if value - pointee.address != slot.delta:
            return "a pointer is not what it stands for"
        free = slot.offset + _POINTER
    return None


def _extent(symbol: str, known: Known) -> int:
    """Bytes of a variable; 0 for one that the build does not have."""
    declared = known.declared.symbols.get(symbol)
    return declared.size if declared else 0


def _inside(memory: _Memory, index: int, delta: int, size: int) -> bool:
    """Whether a range that is not empty lies in one allocation."""
    return 0 <= index < len(memory) and size > 0 and _fits(memory[index].size, delta, size)


def _fits(room: int, start: int, size: int) -> bool:
    return 0 <= start <= room and 0 <= size <= room - start
