"""Runs a launch plan on the engine: memory, launches, findings and counts."""

from __future__ import annotations

import ctypes
import time
import zlib
from collections.abc import Container, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ptxsim.engine import (
    DEADLOCK,
    EVENT,
    FLOW,
    MEMORY,
    NO_MEMORY,
    OUT_OF_TIME,
    PATTERN,
    RAN,
    TOO_LARGE,
    TRAPPED,
    Engine,
    view,
)
from ptxsim.errors import EngineError, Reason, RefusedProgram
from ptxsim.findings.counts import Counters, line_counts
from ptxsim.findings.events import Scene, finding, instruction_note, merge, stream_race
from ptxsim.findings.names import plain_name
from ptxsim.frontend import read_module
from ptxsim.frontend.interface import Interface, interface
from ptxsim.lowering.memory_layout import too_large
from ptxsim.lowering.operation import NoTextures, UnsupportedInstruction
from ptxsim.lowering.origins import origins
from ptxsim.lowering.program import Builder, Program
from ptxsim.lowering.tensor_cores import tensor_core_notes
from ptxsim.lowering.variables import cells, initial_bytes
from ptxsim.records import (
    Allocate,
    Copy,
    Finding,
    Free,
    Kind,
    Launch,
    LineCount,
    Memset,
    Operation,
    Plan,
    SymbolWrite,
)
from ptxsim.soundness import check_parameters, check_plan, overlapping
from ptxsim.streams import Use, Watch, launch_use

Bytes = NDArray[np.uint8]

_VARIABLES_FROM = 0x6000_0000_0000  # device addresses of __device__ and __constant__ variables
_VARIABLE_GAP = 4096
_WORKSPACE_AT = 0x5F00_0000_0000  # device address of what grid.sync() counts in
_WORKSPACE_BYTES = 8  # its size, which nobody reads, and the counter
_POISON = np.array([0x7FC0DEAD], "<u4").view(np.uint8)  # NaN: what nobody wrote
_A_AND_B = (0, 1)  # as a plan has them
_GIVEN = (0, 1, 2)  # and C
# A loop that never ends should be called so within a second at the smallest size, and no kernel
# that computes anything should come near: one thread doing everything needs M·N·K at most.
_STEPS_BASE, _STEPS_PER_PRODUCT = 20_000_000, 100
_MOST_STEPS = 1 << 62
_STOPS = {RAN: None, OUT_OF_TIME: "time", DEADLOCK: "deadlock", TRAPPED: None}


@dataclass(frozen=True)
class SimLimits:
    seconds: float = 10.0  # CPU time of all launches of one plan
    steps: int | None = None  # basic blocks that warps may enter; None: ample for the size
    bytes: int = 1 << 36  # of allocations and variables
    # For every launch, the set-up's first: blocks that the GPU holds at a time. (): not known.
    resident: tuple[int, ...] = ()


@dataclass(frozen=True)
class SimOutcome:
    findings: tuple[Finding, ...]
    lines: tuple[LineCount, ...]
    stopped: str | None  # "time": endless loop or limit; "deadlock": a barrier nobody completes
    seconds: float  # wall
    printed: str  # what device printf wrote
    changed: tuple[str, ...] = ()  # what lives on and is not as the call found it, by its name


@dataclass
class _Region:
    name: str
    address: int
    data: Bytes
    defined: bool


@dataclass
class Running:
    """One plan on one engine machine."""

    machine: int
    regions: list[_Region]
    allocations: list[int]  # allocation index → region index
    symbols: dict[str, int]  # mangled name of a variable → region index
    workspace: Bytes  # of grid.sync(); it is in ``regions`` if a launch is cooperative
    findings: list[Finding] = field(default_factory=list)
    programs: dict[str, tuple[Program, int]] = field(default_factory=dict)


class Simulator:
    """Simulates the kernels of one PTX module.

    ``source_root`` is the folder that source paths in the PTX are made relative to. Raises
    RefusedProgram for PTX that cannot be read. ``run`` may be called from several threads.
    """

    def __init__(self, ptx: str, source_root: Path, engine: Engine) -> None:
        self._engine = engine
        self._module = read_module(ptx, source_root)
        self._shared_cell, self._global_cell = cells(self._module)
        self._variables = [v for v in self._module.variables if v.space in ("global", "const")]
        self._programs: dict[tuple[str, tuple[tuple[str, int], ...]], Program] = {}

    @property
    def declared(self) -> Interface:
        return interface(self._module, origins(self._module))

    def tensor_cores(self, plans: Sequence[Plan]) -> tuple[Finding, ...]:
        """A note for every tensor-core instruction of the kernels that ``plans`` launch."""
        return merge(tensor_core_notes(self._module, plans))

    def run(
        self,
        plan: Plan,
        buffers: Mapping[int, Bytes],
        limits: SimLimits,
        initialised: Container[int] = _A_AND_B,
    ) -> SimOutcome:
        """Execute ``plan``, its set-up and one call of it; arrays in ``buffers`` (by allocation
        index) are read and written. The counts are the call's.

        The allocations in ``initialised`` hold data; all else is uninitialised until something
        writes there. Raises RefusedProgram for a kernel that cannot be simulated and for a
        plan that is not sound, MemoryError if there is too little memory.
        """
        with closing(self.calls(plan, buffers, limits, initialised)) as calls:
            before = next(calls) if plan.setup else None
            if before and (before.stopped or _trapped(before.findings)):
                return before
            outcome = next(calls)
        if before is None:
            return outcome
        return replace(outcome, findings=merge([*before.findings, *outcome.findings]))

    def calls(
        self,
        plan: Plan,
        buffers: Mapping[int, Bytes],
        limits: SimLimits,
        initialised: Container[int] = _A_AND_B,
    ) -> Generator[SimOutcome, None, None]:
        """Execute the set-up, if ``plan`` has one, and then its call each time one is asked for.

        ``limits`` hold for each of them. What a call finds in memory is what the one before left;
        only the ``buffers`` that are not ``initialised`` are uninitialised again. The caller may
        write other values to ``buffers`` between two calls. Raises what ``run`` raises.
        """
        check_plan(plan, self._module, self._variables, limits.bytes)
        addresses = self._addresses(plan)
        run = self._prepare(plan, buffers, addresses, initialised)
        # One for every launch, those of the set-up first.
        first = sum(isinstance(each, Launch) for each in plan.setup)
        resident = limits.resident[:first], limits.resident[first:]
        try:
            if plan.setup:
                yield self._call(run, plan, plan.setup, addresses, limits, resident[0])
                self._forget(run, [i for i in buffers if i not in initialised])
            while True:
                yield self._call(run, plan, plan.operations, addresses, limits, resident[1])
                self._forget(run, [i for i in buffers if i not in initialised])
        except UnsupportedInstruction as error:
            raise self._refusal(error, plan) from None
        finally:
            self._free(run)

    def _call(
        self,
        run: Running,
        plan: Plan,
        operations: Sequence[Operation],
        addresses: Mapping[str, int],
        limits: SimLimits,
        resident: Sequence[int],
    ) -> SimOutcome:
        """What one call does, and its findings and counts alone."""
        started, working = time.monotonic(), time.thread_time()
        products = plan.size.m * plan.size.n * plan.size.k
        steps = min(limits.steps or _STEPS_BASE + _STEPS_PER_PRODUCT * products, _MOST_STEPS)
        library = self._engine.library
        run.findings.clear()
        printed = len(library.sim_printed(run.machine))
        kept = self._kept(run, plan)
        found = [_digest(region) for region in kept]
        stopped = None
        fitting = iter(resident)
        watch = Watch(operations, self._global_cell)
        for place, operation in enumerate(operations):
            watched = watch.watches(place)
            library.sim_trace(run.machine, watched)
            left = limits.seconds - (time.thread_time() - working)
            if isinstance(operation, Launch):
                blocks = next(fitting, 0)
                stopped = self._launch(run, operation, addresses, steps, left, blocks)
            elif isinstance(operation, Allocate):
                index = run.allocations[operation.allocation]
                run.regions[index].data[:] = np.resize(_POISON, len(run.regions[index].data))
                self._forget(run, [operation.allocation])
                self._resize(run, operation.allocation, len(run.regions[index].data))
            elif isinstance(operation, Free):
                self._resize(run, operation.allocation, 0)
            elif isinstance(operation, Memset | Copy | SymbolWrite):
                self._copy(run, operation)
            if watched:
                races = watch.races(place, self._uses(run, operation))
                run.findings += [
                    stream_race(operations[other], operation, run.regions[region].name)
                    for other, region in races
                ]
            if stopped or _trapped(run.findings):
                break
        counters = [self._counters(program, handle) for program, handle in run.programs.values()]
        lines = line_counts(counters, self._module.locations)
        self._free_programs(run)
        return SimOutcome(
            findings=merge([*self.tensor_cores([plan]), *run.findings]),
            lines=lines,
            stopped=stopped,
            seconds=time.monotonic() - started,
            printed=library.sim_printed(run.machine)[printed:].decode(errors="replace"),
            changed=tuple(
                region.name
                for region, before in zip(kept, found, strict=True)
                if _digest(region) != before
            ),
        )

    def _uses(self, run: Running, operation: Operation) -> Sequence[Use]:
        """What an operation that was just carried out does to memory."""
        match operation:
            case Launch():
                return self._launch_uses(run)
            case Memset(allocation=allocation, delta=delta, size=size):
                return (Use(run.allocations[allocation], delta, delta + size, True),)
            case Copy(source_delta=source, target_delta=target, size=size):
                return (
                    Use(run.allocations[operation.source], source, source + size, False),
                    Use(run.allocations[operation.target], target, target + size, True),
                )
            case SymbolWrite(symbol=symbol, delta=delta, data=data):
                return (Use(run.symbols[symbol], delta, delta + len(data), True),)
            case Allocate(ordered=True) | Free():
                index = run.allocations[operation.allocation]
                return (Use(index, 0, len(run.regions[index].data), True),)
        return ()

    def _launch_uses(self, run: Running) -> Sequence[Use]:
        library, found = self._engine.library, []
        for index in range(len(run.regions)):
            cells = ctypes.c_void_p()
            count = library.sim_uses(run.machine, index, ctypes.byref(cells))
            seen = view(cells.value or 0, np.dtype(np.uint8), count)
            found.append(launch_use(index, seen, self._global_cell))
        return [use for use in found if use is not None]

    @staticmethod
    def _kept(run: Running, plan: Plan) -> list[_Region]:
        """What lives on from call to call: variables, and memory that no call allocates."""
        if not plan.setup:
            return []
        own = {*_GIVEN, *plan.own}
        memory = [place for index, place in enumerate(run.allocations) if index not in own]
        return [run.regions[place] for place in dict.fromkeys([*run.symbols.values(), *memory])]

    def _forget(self, run: Running, allocations: Sequence[int]) -> None:
        """Nobody has written to these allocations."""
        for index in allocations:
            status = self._engine.library.sim_undefine(run.machine, run.allocations[index])
            self._done(status, EngineError("the simulator has lost an allocation"))

    def _resize(self, run: Running, allocation: int, size: int) -> None:
        """An allocation that is freed has no bytes."""
        status = self._engine.library.sim_resize(run.machine, run.allocations[allocation], size)
        self._done(status, EngineError("the simulator has lost an allocation"))

    def _free_programs(self, run: Running) -> None:
        for _, handle in run.programs.values():
            self._engine.library.sim_program_free(handle)
        run.programs.clear()

    def _free(self, run: Running) -> None:
        self._free_programs(run)
        self._engine.library.sim_machine_free(run.machine)

    # --- memory

    def _addresses(self, plan: Plan) -> dict[str, int]:
        """Device address of every module variable: the recorder's where the host asked for it."""
        known = {a.symbol: a.address for a in plan.allocations if a.symbol is not None}
        addresses, at = {}, _VARIABLES_FROM
        for variable in self._variables:
            addresses[variable.name] = known.get(variable.name, at)
            at += (variable.size + 2 * _VARIABLE_GAP - 1) // _VARIABLE_GAP * _VARIABLE_GAP
        return addresses

    def _prepare(
        self,
        plan: Plan,
        buffers: Mapping[int, Bytes],
        addresses: Mapping[str, int],
        initialised: Container[int],
    ) -> Running:
        # And the allocation or symbol that it is.
        made: list[tuple[_Region, int | str | None]] = []
        variables = {v.name: v for v in self._variables}
        for index, allocation in enumerate(plan.allocations):
            if allocation.symbol in variables:
                continue
            data = buffers.get(index)
            if data is not None and (data.size != allocation.size or not data.flags.c_contiguous):
                raise ValueError(f"the buffer of {allocation.name} is not the allocation's bytes")
            if data is None:
                data = np.resize(_POISON, max(allocation.size, 1))
            region = _Region(allocation.name, allocation.address, data, index in initialised)
            made.append((region, index))
        for name, variable in variables.items():
            data = initial_bytes(variable, addresses)
            made.append((_Region(plain_name(name), addresses[name], data, True), name))
        workspace = np.zeros(_WORKSPACE_BYTES, np.uint8)
        operations = (*plan.setup, *plan.operations)
        if any(isinstance(each, Launch) and each.cooperative for each in operations):
            region = _Region("the barrier of the grid", _WORKSPACE_AT, workspace, True)
            made.append((region, None))
        made.sort(key=lambda each: each[0].address)
        places = {what: place for place, (_, what) in enumerate(made)}
        run = Running(
            self._engine.library.sim_machine(),
            [region for region, _ in made],
            [
                places[i if a.symbol not in variables else a.symbol]
                for i, a in enumerate(plan.allocations)
            ],
            {name: places[name] for name in variables},
            workspace,
        )
        try:
            for region in run.regions:
                self._done(
                    self._engine.library.sim_region(
                        run.machine,
                        region.address,
                        len(region.data),
                        region.data.ctypes.data,
                        region.defined,
                        self._global_cell,
                    ),
                    overlapping(),
                )
        except BaseException:
            self._free(run)
            raise
        return run

    @staticmethod
    def _done(status: int, refusal: Exception) -> None:
        """Raises MemoryError, or ``refusal`` for anything else that the engine did not do."""
        if status == NO_MEMORY:
            raise MemoryError
        if status != RAN:
            raise refusal

    def _copy(self, run: Running, operation: Memset | Copy | SymbolWrite) -> None:
        if isinstance(operation, Memset):
            index, start = run.allocations[operation.allocation], operation.delta
            run.regions[index].data[start : start + operation.size] = operation.value
            size = operation.size
        elif isinstance(operation, Copy):
            source = run.regions[run.allocations[operation.source]].data
            index, start, size = (
                run.allocations[operation.target],
                operation.target_delta,
                operation.size,
            )
            piece = source[operation.source_delta : operation.source_delta + size].copy()
            run.regions[index].data[start : start + size] = piece
        else:
            index = run.symbols[operation.symbol]
            start, size = operation.delta, len(operation.data)
            run.regions[index].data[start : start + size] = np.frombuffer(operation.data, np.uint8)
        library = self._engine.library
        status = library.sim_define(run.machine, index, start, size, self._global_cell)
        self._done(status, EngineError("the simulator refused a copy that was checked"))

    # --- launches

    def _launch(
        self,
        run: Running,
        launch: Launch,
        addresses: Mapping[str, int],
        steps: int,
        seconds: float,
        resident: int = 0,
    ) -> str | None:
        library = self._engine.library
        if launch.kernel not in run.programs:
            program = self._program(launch.kernel, addresses)
            run.programs[launch.kernel] = (program, self._handle(program))
        program, handle = run.programs[launch.kernel]
        check_parameters(launch, program.param_bytes)
        params = (ctypes.c_uint8 * max(len(launch.params), 1))(*launch.params)
        run.workspace[:] = 0
        cluster = self._module.entry(launch.kernel).cluster or launch.cluster
        library.sim_cluster(run.machine, (ctypes.c_uint32 * 3)(*cluster))
        status = library.sim_launch(
            run.machine,
            handle,
            (ctypes.c_uint32 * 3)(*launch.grid),
            (ctypes.c_uint32 * 3)(*launch.block),
            launch.shared_bytes,
            params,
            len(launch.params),
            steps,
            max(seconds, 0.0),
            resident,
            launch.stack_bytes,
            _WORKSPACE_AT if launch.cooperative else 0,
        )
        if status == TOO_LARGE:
            raise too_large(f"one block of {launch.kernel}", "registers and local memory")
        if status not in _STOPS:
            self._done(status, EngineError(f"the simulator refused to launch {launch.kernel}"))
        scene = Scene(
            program,
            self._module.locations,
            [r.name for r in run.regions],
            launch.shared_bytes,
        )
        events = view(library.sim_event(run.machine), EVENT, library.sim_events(run.machine))
        found = (finding(event, scene) for event in events)
        run.findings += [each for each in found if each is not None]
        library.sim_clear_events(run.machine)
        return _STOPS[status]

    def _handle(self, program: Program) -> int:
        made, bad = ctypes.c_void_p(), ctypes.c_uint64()
        status = self._engine.library.sim_program(
            ctypes.byref(program.packed), ctypes.byref(made), ctypes.byref(bad)
        )
        source = program.sources[bad.value] if bad.value < program.length else None
        self._done(
            status,
            EngineError("the simulator rejected a program that it made itself")
            if source is None
            else UnsupportedInstruction.form(source),
        )
        assert made.value is not None
        return made.value

    def _program(self, kernel: str, addresses: Mapping[str, int]) -> Program:
        key = (kernel, tuple(sorted(addresses.items())))
        if key not in self._programs:
            builder = Builder(
                self._module, addresses, self._engine, self._shared_cell, self._global_cell
            )
            self._programs[key] = builder.build(kernel)
        return self._programs[key]

    def _refusal(self, error: UnsupportedInstruction, plan: Plan) -> RefusedProgram:
        note = instruction_note(self._module, Kind.UNSUPPORTED, str(error), error.instruction)
        found = (note, *self.tensor_cores([plan]))
        reason = Reason.UNSOUND if isinstance(error, NoTextures) else Reason.UNSUPPORTED
        return RefusedProgram(reason, str(error), found, note.place)

    def _counters(self, program: Program, handle: int) -> Counters:
        library, n = self._engine.library, program.length
        patterns = library.sim_patterns(handle)
        return Counters(
            program,
            view(library.sim_blocks(handle), FLOW, n),
            view(library.sim_guarded(handle), FLOW, n),
            view(library.sim_memory(handle), MEMORY, n),
            view(library.sim_source(handle), MEMORY, n),
            view(patterns, PATTERN, n if patterns else 0),
        )


def _trapped(findings: Sequence[Finding]) -> bool:
    return any(each.kind is Kind.TRAP for each in findings)


def _digest(region: _Region) -> int:
    return zlib.crc32(region.data.data)
