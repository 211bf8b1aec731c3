"""Accesses outside their memory at sizes that are too large to simulate: of each launch of a plan a
few blocks run, in memory that is made up.

A finding must hold for the whole launch, and for every run. Blocks of one launch may run in any
order, so what the first ones do in the memory that the launch finds is what a GPU may do. What is
made up is what that memory holds: an access counts if it happens at the same address with other
contents, for then the address does not depend on them. What nobody wrote is not judged at all.

Allocations and variables are so far apart that no wrong index reaches another one.
"""

import itertools
import math
import struct
import time
from collections.abc import Sequence

import msgspec
import numpy as np

from ptxsim.findings.finding import Accessed, Finding, FindingKind
from ptxsim.findings.names import plain_name
from ptxsim.findings.reports import merge
from ptxsim.frontend.records import Variable
from ptxsim.kernels import Running
from ptxsim.lowering.operation import UnsupportedInstruction
from ptxsim.machine import MADE_UP, Bytes
from ptxsim.plan.records import (
    Allocation,
    Copy,
    Dim3,
    Launch,
    Memset,
    Operation,
    Plan,
    PointerSlot,
    SymbolWrite,
    Write,
)
from ptxsim.sampling import MOST_BYTES, STEPS, Sampler, distinct_launches
from ptxsim.soundness import check_plan, cluster_of

_COUNTED = (FindingKind.OUT_OF_BOUNDS, FindingKind.MISALIGNED)
_FILLERS = (0, 0x3F)  # bytes of made-up memory; floats of 0 and 0.75
_APART = 1 << 41  # bytes from the start of one allocation to that of the next
_FIRST = 1 << 11  # of these distances: the first allocation's
_MOST = 1 << 14  # allocations and variables
_ALIGNED = 1 << 32  # an address keeps its place in a piece of so many bytes
_INDICES = 1 << 32  # of 32 bits; from half of them on a signed one is negative
_WIDTHS = (1, 2, 4, 8, 16)  # bytes of an element
_FOR_MORE = 0.1  # of the time, for blocks that seldom show what the others do not


_Blocks = tuple[Sequence[Dim3], Sequence[Dim3]]  # that run in any case; if they cost little


class Prober(Sampler):
    """Finds what is wrong with plans that are too large to simulate."""

    def probe(self, plan: Plan, seconds: float) -> tuple[Finding, ...]:
        """Find accesses outside their memory, in the first launch that makes some.

        seconds: CPU time at most; twice as much where something has to be looked at again. () for
        more kinds of launch than are looked at. Raises RefusedProgram as ``run`` does.
        """
        check_plan(plan, self._module, self.variables, MOST_BYTES)
        if len(plan.allocations) + len(self.variables) > _MOST:
            return ()
        moved = _apart(plan, self.variables)
        kinds = distinct_launches(moved)
        started, left = time.thread_time(), seconds
        try:
            for place, launch in enumerate(moved.operations):
                if left > 0 and id(launch) in kinds:
                    found = self._repeated(moved, place, left, seconds)
                    counted = (_placed(each, moved, plan) for each in found)
                    if certain := [each for each in counted if each is not None]:
                        return merge(certain)
                    left = seconds - (time.thread_time() - started)
        except UnsupportedInstruction as error:
            raise self._refusal(error, plan) from None
        return ()

    def _repeated(
        self, plan: Plan, place: int, seconds: float, again_seconds: float
    ) -> list[Finding]:
        """Return the findings of the launch at ``place`` that do not depend on memory."""
        launch, (zeros, others) = plan.operations[place], _FILLERS
        assert isinstance(launch, Launch)
        found = self._run_blocks(plan, place, _blocks(launch, plan), seconds, zeros)
        again = tuple(dict.fromkeys(each.block for each in found if each.block))
        if not again:
            return []
        same = self._run_blocks(plan, place, (again, ()), again_seconds, others)
        known = {_what(each) for each in same}
        return [each for each in found if _what(each) in known]

    def _run_blocks(
        self, plan: Plan, place: int, blocks: _Blocks, seconds: float, filler: int
    ) -> list[Finding]:
        """Run blocks of the launch at ``place``, and return what they access outside its memory."""
        launch, library = plan.operations[place], self._engine.library
        assert isinstance(launch, Launch)
        needed, others = blocks
        cluster = cluster_of(launch, self._module)
        run = self._prepare(plan, _memory(plan, filler), range(len(plan.allocations)))
        try:
            self._carry_out(run, plan, place, filler)
            started, spent = time.thread_time(), 0.0
            for count, block in enumerate((*needed, *others)):
                dear = count >= len(needed) and spent * (count + 1) > _FOR_MORE * seconds * count
                if dear or spent >= seconds:
                    break
                number = _number(block, launch.grid, cluster)
                library.sim_sample(run.machine.handle, number, number + 1)
                self._launch(run, launch, STEPS, seconds - spent)
                spent = time.thread_time() - started
        finally:
            self._free(run)
        return [each for each in run.findings if each.access and each.kind in _COUNTED]

    def _carry_out(self, run: Running, plan: Plan, place: int, filler: int) -> None:
        """Do what the host asks for before a launch.

        What lies in memory that earlier launches may have changed, or other blocks behind a barrier
        of the grid, is made up in the end; kernels cannot change constants.
        """
        launch, before = plan.operations[place], plan.operations[:place]
        cooperative = isinstance(launch, Launch) and launch.cooperative
        last = max((k for k, each in enumerate(before) if isinstance(each, Launch)), default=-1)
        constants = {each.name for each in self.variables if each.space == "const"}
        writes: list[Operation] = [*plan.setup, *before]
        if filler and (plan.setup or last >= 0 or cooperative):
            for index, allocation in enumerate(plan.allocations):
                if allocation.symbol is not None and allocation.symbol not in constants:
                    every = Memset(allocation=index, delta=0, value=filler, size=allocation.size)
                    run.machine.carry_out(every)
            writes = [w for w in writes if isinstance(w, SymbolWrite) and w.symbol in constants]
            writes += () if cooperative else before[last + 1 :]
        for write in writes:
            match write:
                case SymbolWrite():
                    run.machine.carry_out(write)
                case Write(allocation=index) | Memset(allocation=index):
                    if _is_kept(plan.allocations[index]):
                        run.machine.carry_out(write)
                case Copy(source=source, target=target):
                    if all(_is_kept(plan.allocations[index]) for index in (source, target)):
                        run.machine.carry_out(write)


# --- memory ------------------------------------------------------------------------------------


def _apart(plan: Plan, variables: Sequence[Variable]) -> Plan:
    """The plan with other addresses, and all variables among its allocations."""
    named = {each.symbol for each in plan.allocations}
    more = (
        Allocation(name=each.name, address=0, size=each.size, symbol=each.name)
        for each in variables
        if each.name not in named
    )
    allocations = tuple(
        msgspec.structs.replace(each, address=_APART * slot + each.address % _ALIGNED)
        for slot, each in enumerate((*plan.allocations, *more), _FIRST)
    )

    def moved(operation: Operation) -> Operation:
        match operation:
            case Launch(params=data, pointers=pointers):
                return msgspec.structs.replace(operation, params=there(data, pointers))
            case SymbolWrite(data=data, pointers=pointers) | Write(data=data, pointers=pointers):
                return msgspec.structs.replace(operation, data=there(data, pointers))
        return operation

    def there(data: bytes, pointers: Sequence[PointerSlot]) -> bytes:
        changed = bytearray(data)
        for each in pointers:
            address = allocations[each.allocation].address + each.delta
            struct.pack_into("<Q", changed, each.offset, address)
        return bytes(changed)

    return msgspec.structs.replace(
        plan,
        allocations=allocations,
        setup=tuple(map(moved, plan.setup)),
        operations=tuple(map(moved, plan.operations)),
    )


def _is_kept(allocation: Allocation) -> bool:
    """Whether memory holds what is written there."""
    return allocation.symbol is not None or allocation.size <= MADE_UP


def _memory(plan: Plan, filler: int) -> dict[int, Bytes]:
    piece = np.full(MADE_UP, filler, np.uint8)
    return {
        index: np.full(each.size, filler, np.uint8) if _is_kept(each) else piece
        for index, each in enumerate(plan.allocations)
        if each.symbol is None
    }


# --- findings ----------------------------------------------------------------------------------


def _placed(finding: Finding, moved: Plan, plan: Plan) -> Finding | None:
    """The finding with the memory that its access misses, at its place in ``plan``; None if it does
    not count.

    A program may come from one allocation to another by the distance between them, which we changed
    (``plan`` has the old one): so it counts if it lay in no allocation there, or wrapped.
    """
    access = finding.access
    assert access
    slot = (access.address + _APART // 2) // _APART - _FIRST
    if access.space in ("global", "constant") and 0 <= slot < len(moved.allocations):
        own = moved.allocations[slot]
        start = access.address - own.address
        if own.symbol is None and not _has_wrapped(start, own.size):
            before = plan.allocations[slot].address + start
            if any(0 <= before - each.address < each.size for each in plan.allocations):
                return None
        at = (plan.allocations[slot] if slot < len(plan.allocations) else own).address
        accessed = Accessed(name=plain_name(own.name), start=at, size=own.size)
        access = msgspec.structs.replace(access, address=at + start, accessed=accessed)
    return msgspec.structs.replace(finding, access=access) if access.accessed.name else None


def _has_wrapped(start: int, size: int) -> bool:
    """Whether a signed index of 32 bits that had not wrapped would lead into the allocation."""
    return any(_INDICES // 2 * width <= start + _INDICES * width < size for width in _WIDTHS)


def _what(finding: Finding) -> tuple[object, ...]:
    """The part of a finding that repeats if it does not depend on what memory holds."""
    address = finding.access.address if finding.access else None
    return finding.place, finding.ptx_line, finding.block, finding.thread, address


# --- blocks ------------------------------------------------------------------------------------


def _blocks(launch: Launch, plan: Plan) -> _Blocks:
    """The last block and, for each allocation of so many elements, one in the middle of those where
    a signed index of 32 bits is negative; then the block in the middle and the other corners."""
    last: Dim3 = (launch.grid[0] - 1, launch.grid[1] - 1, launch.grid[2] - 1)

    def part(share: float) -> Dim3:
        x, y, z = (min(int(extent * share), extent - 1) for extent in launch.grid)
        return x, y, z

    counts = {
        each.size // width
        for each in plan.allocations
        for width in _WIDTHS
        if each.size // width > _INDICES // 2
    }
    wrapping = ((_INDICES // 2 + min(count, _INDICES)) / 2 / count for count in sorted(counts))
    needed = tuple(dict.fromkeys((last, *map(part, wrapping))))
    xs, ys, zs = ((end, 0) for end in last)
    corners = itertools.product(xs, ys, zs)
    others = dict.fromkeys((part(0.5), *corners))
    return needed, tuple(each for each in others if each not in needed)


def _number(block: Dim3, grid: Dim3, cluster: Dim3) -> int:
    """The block's number as the engine counts: clusters in order, and in each its blocks."""
    x, y, z = (n // of for n, of in zip(block, cluster, strict=True))
    across, down = grid[0] // cluster[0], grid[1] // cluster[1]
    return (x + across * (y + down * z)) * math.prod(cluster)
