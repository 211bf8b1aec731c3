"""Runs a launch plan on the engine: programs, launches, findings and counts."""

import ctypes
import itertools
import math
import time
from collections.abc import Collection, Container, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path

from ptxsim import engine_header as header
from ptxsim.engine import Engine, view
from ptxsim.findings.event_table import Event
from ptxsim.findings.finding import Finding, FindingKind
from ptxsim.findings.metrics import line_metrics
from ptxsim.findings.reports import Scene, finding, instruction_note, merge, stream_race
from ptxsim.findings.row_counts import Counters, line_counts
from ptxsim.frontend.interface import Declarations, interface, laid_out
from ptxsim.frontend.module import read_module
from ptxsim.lowering.called_functions import resolve_pointers
from ptxsim.lowering.memory_layout import cells, too_large
from ptxsim.lowering.notes import hints, origins, tensor_core_notes, unset_constants
from ptxsim.lowering.operation import UnsupportedInstruction
from ptxsim.lowering.program import Builder, EngineProgram
from ptxsim.machine import WORKSPACE_AT, Bytes, Machine, ensure, errors, judge_races, judge_streams
from ptxsim.outcome import (
    EngineError,
    LaunchedBlocks,
    Reason,
    RefusedProgram,
    SimLimits,
    SimOutcome,
)
from ptxsim.plan.records import Launch, Operation, Plan, Size
from ptxsim.soundness import check_parameters, check_plan, cluster_of
from ptxsim.streams import Watch, postponed
from ptxsim.text import phrase

# A loop that never ends should be called so within a second at the smallest size, and no kernel
# that computes anything should come near: one thread doing everything needs M·N·K at most.
_STEPS_BASE, _STEPS_PER_PRODUCT = 20_000_000, 100
_MOST_STEPS = 1 << 62
_WARP = 32  # threads
_MOST_POSTPONED = 4  # operations of a call, each in a look of its own
_STOPS = {
    header.RAN: None,
    header.OUT_OF_TIME: "time",
    header.DEADLOCK: "deadlock",
    header.TRAPPED: None,
}


@dataclass
class Running:
    """One plan under way."""

    machine: Machine
    findings: list[Finding] = field(default_factory=list)
    blocks: list[LaunchedBlocks] = field(default_factory=list)
    programs: dict[str, tuple[EngineProgram, int]] = field(default_factory=dict)  # and the engine's
    doubtful: dict[int, tuple[int, int]] = field(default_factory=dict)  # Watch's, of the last call


_module = lru_cache(maxsize=4)(read_module)  # once for several launches of the same text


class Simulator:
    """Simulates the kernels of one PTX module.

    ``source_root`` is the folder that source paths in the PTX are made relative to; ``metrics``
    asks for an outcome's. Raises RefusedProgram for PTX that cannot be read. ``run`` may be called
    from several threads.
    """

    def __init__(self, ptx: str, source_root: Path, engine: Engine, metrics: bool = False) -> None:
        self._engine = engine
        self._metrics = metrics
        self._module = _module(ptx, source_root)
        self._shared_cell, self.global_cell = cells(self._module)
        self._resolved, self.functions = resolve_pointers(self._module)
        self.variables = [v for v in self._module.variables if v.space in ("global", "const")]
        self._hints_of: dict[str, Sequence[Finding]] = {}
        self._living: dict[int, Running] = {}  # by machine, of ``carry_out``
        self._programs: dict[tuple[str, tuple[tuple[str, int], ...]], EngineProgram] = {}

    @property
    def declared(self) -> Declarations:
        return interface(self._module, origins(self._module))

    def unset_constants(self, kernel: str, given: Collection[str]) -> tuple[Finding, ...]:
        """A warning for each __constant__ variable that a kernel uses and that has no value."""
        return tuple(unset_constants(self._module, kernel, given))

    def tensor_cores(self, plans: Sequence[Plan]) -> tuple[Finding, ...]:
        """A note for every tensor-core instruction of the kernels that ``plans`` launch."""
        return merge(tensor_core_notes(self._module, plans))

    def run(
        self,
        plan: Plan,
        buffers: Mapping[int, Bytes],
        limits: SimLimits,
        initialised: Container[int] | None = None,
        *,
        turn: int = 0,
        seed: int = 0,
    ) -> SimOutcome:
        """Execute ``plan``, its set-up and one call of it; arrays in ``buffers`` (by allocation
        index) are read and written. The counts are the call's. turn, seed: as ``calls`` takes them.

        The allocations in ``initialised`` hold data; all else is uninitialised until something
        writes there. Raises RefusedProgram for a kernel that cannot be simulated and for a
        plan that is not sound, MemoryError if there is too little memory.
        """
        made = self.calls(plan, buffers, limits, initialised, turn=turn, seed=seed)
        with closing(made) as calls:
            before = next(calls) if plan.setup else None
            if before and (before.stopped or trapped(before.findings)):
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
        initialised: Container[int] | None = None,
        *,
        turn: int = 0,
        seed: int = 0,
        writers: Sequence[int] = (),
    ) -> Generator[SimOutcome, None, None]:
        """Execute the set-up, if ``plan`` has one, and then its call each time one is asked for.

        ``limits`` hold for each of them. What a call finds in memory is what the one before left;
        only the ``buffers`` that are not ``initialised`` are uninitialised again. The caller may
        write other values to ``buffers`` between two calls. Raises what ``run`` raises.

        turn: of the first of them; each has the next one. In odd turns blocks and warps run from
        the last to the first, and what CUDA leaves undefined differs from turn to turn.
        seed: of a permutation in which blocks and warps run instead; 0: none.
        writers: allocations of which the outcomes say who wrote to them.
        """
        check_plan(plan, self._module, self.variables, limits.bytes)
        initialised = range(plan.inputs) if initialised is None else initialised
        run = self._prepare(plan, buffers, initialised, turn)
        poisoned = [index for index in buffers if index not in initialised]
        # One for every launch, those of the set-up first.
        first = sum(isinstance(each, Launch) for each in plan.setup)
        work = [(plan.setup, limits.resident[:first])] if plan.setup else []
        then = plan.operations, limits.resident[first:]
        try:
            for number in itertools.count():
                work_of = operations, resident = work[number] if number < len(work) else then
                run.machine.begin_call(turn + number, seed)
                look = partial(self._look, run, plan, operations, resident=resident)
                outcome = judge_races(run.machine, limits, look)
                in_order = not seed and (turn + number) % 2 == 0
                if run.doubtful and not in_order and not errors(outcome.findings):
                    outcome = self._other_streams_first(run, plan, work_of, limits) or outcome
                yield replace(outcome, writers={w: run.machine.writers(w) for w in writers})
                run.machine.forget(poisoned)
        except UnsupportedInstruction as error:
            raise self._refusal(error, plan) from None
        finally:
            self._free(run)

    def carry_out(self, machine: Machine, launch: Launch, limits: SimLimits) -> SimOutcome:
        """Execute one launch on memory that lives on, and count nothing. Raises what ``run``
        raises."""
        plan = Plan(size=Size.of(), allocations=(), operations=(launch,))
        run = self._living.setdefault(machine.handle, Running(machine))

        def look(limits: SimLimits) -> SimOutcome:
            run.findings.clear()
            run.blocks.clear()
            printed = len(self._engine.library.sim_printed(machine.handle))
            stopped = self._launch(run, launch, limits.steps or _MOST_STEPS, limits.seconds)
            text = self._engine.library.sim_printed(machine.handle)[printed:]
            return SimOutcome(
                findings=merge(run.findings),
                lines=(),
                stopped=stopped,
                seconds=0.0,
                printed=text.decode(errors="replace"),
            )

        try:
            check_plan(plan, self._module, self.variables, limits.bytes)
            return judge_races(machine, limits, look)
        except UnsupportedInstruction as error:
            raise self._refusal(error, plan) from None

    def shared_bytes(self, kernel: str, addresses: Mapping[str, int]) -> int:
        """Bytes of shared memory that a block of the kernel has in any case."""
        return int(self._program(kernel, addresses).packed["shared_bytes"])

    def _other_streams_first(
        self,
        run: Running,
        plan: Plan,
        work: tuple[Sequence[Operation], Sequence[int]],
        limits: SimLimits,
    ) -> SimOutcome | None:
        """Run a call again, whose operations may order themselves by flags or counters: if they do
        not, an order in which other streams come first shows it. None where none does."""
        operations, resident = work
        if any(isinstance(each, Launch) and each.programmatic for each in operations):
            return None
        fitting = iter(resident)
        held = [next(fitting, 0) if isinstance(each, Launch) else 0 for each in operations]
        seen = None
        for late, (other, region) in list(run.doubtful.items())[:_MOST_POSTPONED]:
            order = postponed(operations, late)
            moved = [operations[place] for place in order]
            fits = [held[place] for place in order if isinstance(operations[place], Launch)]
            look = partial(self._look, run, plan, moved, resident=fits, watched=False)
            if this := judge_streams(run.machine, limits, look):
                race = stream_race(operations[late], operations[other], run.machine.names[region])
                if errors(this.findings):
                    return replace(this, findings=(race, *this.findings))
                seen = replace(this, early=(race, *this.early))
        return seen

    def _look(
        self,
        run: Running,
        plan: Plan,
        operations: Sequence[Operation],
        limits: SimLimits,
        resident: Sequence[int],
        *,
        watched: bool = True,
    ) -> SimOutcome:
        """Run one call and return its own findings and counts. watched: their races with each other
        are found."""
        started, working = time.monotonic(), time.thread_time()
        products = math.prod(plan.size.extents)
        steps = min(limits.steps or _STEPS_BASE + _STEPS_PER_PRODUCT * products, _MOST_STEPS)
        library = self._engine.library
        run.findings.clear()
        run.blocks.clear()
        machine = run.machine
        printed = len(library.sim_printed(machine.handle))
        before = machine.kept(plan)
        stopped = None
        fitting = iter(resident)
        watch = Watch(operations if watched else (), self.global_cell)
        for place, operation in enumerate(operations):
            compared = watch.watches(place)
            pair = operations[place : place + 2]
            follows = [isinstance(each, Launch) and each.programmatic for each in pair]
            library.sim_trace(machine.handle, compared or any(follows))
            library.sim_follows(machine.handle, follows[0])
            left = limits.seconds - (time.thread_time() - working)
            if isinstance(operation, Launch):
                stopped = self._launch(run, operation, steps, left, next(fitting, 0))
            elif left > 0:
                machine.carry_out(operation)
            else:
                stopped = "time"
                break
            if compared:
                races = watch.races(place, machine.uses(operation))
                run.findings += [
                    stream_race(operations[other], operation, machine.names[region])
                    for other, region in races
                ]
            if stopped or trapped(run.findings):
                break
        after = machine.kept(plan)
        early: list[Finding] = []
        others: list[Finding] = []
        for each in run.findings:
            (early if each.event and each.event.needs_difference else others).append(each)
        counters = [self._counters(program, handle) for program, handle in run.programs.values()]
        lines = line_counts(counters, self._module.locations)
        metrics = line_metrics(counters, self._module) if self._metrics else ()
        kernels = list(run.programs)
        run.doubtful = watch.doubtful
        synchronises = bool(watch.doubtful) or any(
            each.grid != (1, 1, 1) or math.prod(each.block) > _WARP
            for each in operations
            if isinstance(each, Launch)
            and each.kernel in run.programs
            and run.programs[each.kernel][0].synchronises
        )
        self._free_programs(run)
        return SimOutcome(
            findings=merge([*self.tensor_cores([plan]), *others]),
            lines=lines,
            stopped=stopped,
            seconds=time.monotonic() - started,
            printed=library.sim_printed(machine.handle)[printed:].decode(errors="replace"),
            hints=merge([hint for kernel in kernels for hint in self._hints(kernel)]),
            changed=tuple(machine.names[at] for at in before if after[at] != before[at]),
            metrics=metrics,
            early=merge(early),
            synchronises=synchronises,
            blocks=tuple(run.blocks),
        )

    def _prepare(
        self, plan: Plan, buffers: Mapping[int, Bytes], initialised: Container[int], turn: int = 0
    ) -> Running:
        memory = (self.variables, buffers, initialised, self.global_cell, self.functions)
        return Running(Machine(self._engine, plan, *memory, turn))

    def _free_programs(self, run: Running) -> None:
        for _, handle in run.programs.values():
            self._engine.library.sim_program_free(handle)
        run.programs.clear()

    def _free(self, run: Running) -> None:
        self._free_programs(run)
        run.machine.close()

    def _launch(
        self, run: Running, launch: Launch, steps: int, seconds: float, resident: int = 0
    ) -> str | None:
        library, machine = self._engine.library, run.machine
        if launch.kernel not in run.programs:
            program = self._program(launch.kernel, machine.addresses)
            run.programs[launch.kernel] = (program, self._handle(program))
        program, handle = run.programs[launch.kernel]
        check_parameters(launch, program.param_bytes)
        params = (ctypes.c_uint8 * max(len(launch.params), 1))(*launch.params)
        machine.workspace[:] = 0
        cluster = cluster_of(launch, self._module)
        library.sim_cluster(machine.handle, (ctypes.c_uint32 * 3)(*cluster))
        status = library.sim_launch(
            machine.handle,
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
            WORKSPACE_AT if launch.cooperative else 0,
        )
        if status == header.TOO_LARGE:
            raise too_large(
                phrase("one block of {kernel}", kernel=launch.kernel),
                phrase("registers and local memory"),
            )
        if status not in _STOPS:
            ensure(status, EngineError(f"the simulator refused to launch {launch.kernel}"))
        ended = ctypes.c_uint64()
        idle = library.sim_idle(machine.handle, ctypes.byref(ended))
        run.blocks.append(LaunchedBlocks(launch, ended.value, idle))
        if not library.sim_events(machine.handle):
            return _STOPS[status]
        events = view(
            library.sim_event(machine.handle), header.EVENT, library.sim_events(machine.handle)
        )
        lanes = view(library.sim_blocks(handle), header.FLOW, program.length)["lanes"]
        by_all = lanes >= math.prod((*launch.grid, *launch.block))
        given = [
            int.from_bytes(launch.params[each.offset :][: each.size], "little")
            for each in laid_out(self._module.functions[launch.kernel].params)
        ]
        about = program, self._module.locations, machine.names
        scene = Scene(*about, launch, given, events, by_all)
        found = (finding(event, scene) for event in events)
        run.findings += [each for each in found if each is not None]
        library.sim_clear_events(machine.handle)
        return _STOPS[status]

    def _handle(self, program: EngineProgram) -> int:
        made, bad = ctypes.c_void_p(), ctypes.c_uint64()
        status = self._engine.library.sim_program(
            program.packed.ctypes.data, ctypes.byref(made), ctypes.byref(bad)
        )
        source = program.sources[bad.value] if bad.value < program.length else None
        ensure(
            status,
            EngineError("the simulator rejected a program that it made itself")
            if source is None
            else UnsupportedInstruction.form(source),
        )
        assert made.value is not None
        return made.value

    def _program(self, kernel: str, addresses: Mapping[str, int]) -> EngineProgram:
        key = (kernel, tuple(sorted(addresses.items())))
        if key not in self._programs:
            widths = (self._shared_cell, self.global_cell)
            builder = Builder(self._resolved, addresses, self._engine, *widths)
            self._programs[key] = builder.build(kernel)
        return self._programs[key]

    def _hints(self, kernel: str) -> Sequence[Finding]:
        if kernel not in self._hints_of:
            self._hints_of[kernel] = tuple(hints(self._module, kernel))
        return self._hints_of[kernel]

    def _refusal(self, error: UnsupportedInstruction, plan: Plan) -> RefusedProgram:
        note = instruction_note(self._module, FindingKind.UNSUPPORTED, error.why, error.instruction)
        found = (note, *self.tensor_cores([plan]))
        return RefusedProgram(Reason.UNSUPPORTED, error.why, found, note.place)

    def _counters(self, program: EngineProgram, handle: int) -> Counters:
        library, n = self._engine.library, program.length
        patterns = library.sim_patterns(handle)
        return Counters(
            program,
            view(library.sim_blocks(handle), header.FLOW, n),
            view(library.sim_guarded(handle), header.FLOW, n),
            view(library.sim_memory(handle), header.MEMORY, n),
            view(library.sim_source(handle), header.MEMORY, n),
            view(patterns, header.PATTERN, 2 * n if patterns else 0),
        )


def trapped(findings: Sequence[Finding]) -> bool:
    ends = {Event.NO_FUNCTION, Event.BRANCH_OUT_OF_TABLE}
    return any(each.kind is FindingKind.TRAP or each.event in ends for each in findings)
