"""Runs a launch plan on the engine: programs, launches, findings and counts."""

import itertools
import math
import time
from collections.abc import Container, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from ptxsim import engine_header as header
from ptxsim.engine import Engine, view
from ptxsim.findings.finding import Finding
from ptxsim.findings.metrics import line_metrics
from ptxsim.findings.reports import merge, stream_race
from ptxsim.findings.row_counts import Counters, line_counts
from ptxsim.findings.writes import WatchedElement
from ptxsim.kernels import MOST_STEPS, ModuleKernels, Running, trapped
from ptxsim.lowering.notes import hints
from ptxsim.lowering.operation import UnsupportedInstruction
from ptxsim.lowering.program import EngineProgram
from ptxsim.machine import Bytes, Machine, errors, judge_races, judge_streams
from ptxsim.outcome import SimLimits, SimOutcome
from ptxsim.plan.records import Launch, Operation, Plan
from ptxsim.soundness import check_plan
from ptxsim.streams import Watch, postponed

# A loop that never ends should be called so within a second at the smallest size, and no kernel
# that computes anything should come near: one thread doing everything needs M·N·K at most.
_STEPS_BASE, _STEPS_PER_PRODUCT = 20_000_000, 100
_WARP = 32  # threads
_MOST_POSTPONED = 4  # operations of a call, each in a look of its own


class Simulator(ModuleKernels):
    """Simulates plans of launches of one module's kernels; ``metrics`` asks for an outcome's.
    ``run`` may be called from several threads.
    """

    def __init__(self, ptx: str, source_root: Path, engine: Engine, metrics: bool = False) -> None:
        super().__init__(ptx, source_root, engine)
        self._metrics = metrics
        self._hints_of: dict[str, Sequence[Finding]] = {}

    def run(
        self,
        plan: Plan,
        buffers: Mapping[int, Bytes],
        limits: SimLimits,
        initialised: Container[int] | None = None,
        *,
        turn: int = 0,
        seed: int = 0,
        watch: Sequence[WatchedElement] = (),
    ) -> SimOutcome:
        """Execute ``plan``, its set-up and one call of it; arrays in ``buffers`` (by allocation
        index) are read and written. The counts are the call's. turn, seed, watch: as ``calls``
        takes them.

        The allocations in ``initialised`` hold data; all else is uninitialised until something
        writes there. Raises RefusedProgram for a kernel that cannot be simulated and for a
        plan that is not sound, MemoryError if there is too little memory.
        """
        made = self.calls(plan, buffers, limits, initialised, turn=turn, seed=seed, watch=watch)
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
        watch: Sequence[WatchedElement] = (),
    ) -> Generator[SimOutcome, None, None]:
        """Execute the set-up, if ``plan`` has one, and then its call each time one is asked for.

        ``limits`` hold for each of them. What a call finds in memory is what the one before left;
        only the ``buffers`` that are not ``initialised`` are uninitialised again. The caller may
        write other values to ``buffers`` between two calls. Raises what ``run`` raises.

        turn: of the first of them; each has the next one. In odd turns blocks and warps run from
        the last to the first, and what CUDA leaves undefined differs from turn to turn.
        seed: of a permutation in which blocks and warps run instead; 0: none.
        writers: allocations of which the outcomes say who wrote to them.
        watch: elements of which the outcomes list every write; ValueError for unknown ones.
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
            run.machine.watch(watch)
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
        steps = min(limits.steps or _STEPS_BASE + _STEPS_PER_PRODUCT * products, MOST_STEPS)
        library = self._engine.library
        run.begin_look()
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
            writes=tuple(run.writes),
            writes_left_out=run.left_out,
        )

    def _prepare(
        self, plan: Plan, buffers: Mapping[int, Bytes], initialised: Container[int], turn: int = 0
    ) -> Running:
        memory = (self.variables, buffers, initialised, self.global_cell, self.functions)
        return Running(Machine(self._engine, plan, *memory, turn))

    def _hints(self, kernel: str) -> Sequence[Finding]:
        if kernel not in self._hints_of:
            self._hints_of[kernel] = tuple(hints(self._module, kernel))
        return self._hints_of[kernel]

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
