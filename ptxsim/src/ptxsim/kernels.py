"""The kernels of one PTX module as programs of the engine, and launches of them."""

import ctypes
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ptxsim import engine_header as header
from ptxsim.engine import Engine, view
from ptxsim.findings.event_table import Event
from ptxsim.findings.finding import Finding, FindingKind
from ptxsim.findings.reports import Scene, finding, instruction_note, merge
from ptxsim.findings.writes import MOST_WRITES, ElementWrite
from ptxsim.frontend.interface import Declarations, interface, laid_out
from ptxsim.frontend.module import read_module
from ptxsim.frontend.records import PtxModule
from ptxsim.lowering.called_functions import resolve_pointers
from ptxsim.lowering.memory_layout import cells, too_large
from ptxsim.lowering.notes import origins, tensor_core_notes, unset_constants
from ptxsim.lowering.operation import UnsupportedInstruction
from ptxsim.lowering.program import Builder, EngineProgram
from ptxsim.machine import WORKSPACE_AT, Machine, ensure
from ptxsim.outcome import EngineError, LaunchedBlocks, Reason, RefusedProgram
from ptxsim.plan.records import Launch, Plan
from ptxsim.soundness import check_parameters, cluster_of
from ptxsim.text import phrase
from ptxsim.watching import begin_watch, watched_writes

MOST_STEPS = 1 << 62
_STOPS = {
    header.RAN: None,
    header.OUT_OF_TIME: "time",
    header.DEADLOCK: "deadlock",
    header.TRAPPED: None,
}


@dataclass
class Running:
    """Kernels at work on one memory."""

    machine: Machine
    findings: list[Finding] = field(default_factory=list)
    blocks: list[LaunchedBlocks] = field(default_factory=list)
    writes: list[ElementWrite] = field(default_factory=list)  # to the machine's watched elements
    left_out: int = 0  # further ones
    programs: dict[str, tuple[EngineProgram, int]] = field(default_factory=dict)  # and the engine's
    doubtful: dict[int, tuple[int, int]] = field(default_factory=dict)  # Watch's, of the last call

    def begin_look(self) -> None:
        """Forget what an earlier look at the same launches found."""
        for each in (self.findings, self.blocks, self.writes):
            each.clear()
        self.left_out = 0


_module = lru_cache(maxsize=4)(read_module)  # once for several launches of the same text


class ModuleKernels:
    """The kernels of one PTX module.

    ``source_root`` is the folder that source paths in the PTX are made relative to. Raises
    RefusedProgram for PTX that cannot be read.
    """

    def __init__(self, ptx: str | PtxModule, source_root: Path, engine: Engine) -> None:
        self._engine = engine
        self._module = _module(ptx, source_root) if isinstance(ptx, str) else ptx
        self._shared_cell, self.global_cell = cells(self._module)
        self._resolved, self.functions = resolve_pointers(self._module)
        self.variables = [v for v in self._module.variables if v.space in ("global", "const")]
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
        lanes_before = self._lanes(program, handle).copy()
        check_parameters(launch, program.param_bytes)
        params = (ctypes.c_uint8 * max(len(launch.params), 1))(*launch.params)
        machine.workspace[:] = 0
        cluster = cluster_of(launch, self._module)
        library.sim_cluster(machine.handle, (ctypes.c_uint32 * 3)(*cluster))
        if machine.watched:
            begun = begin_watch(self._engine, machine, MOST_WRITES - len(run.writes))
            ensure(begun, EngineError("the simulator cannot watch its memory"))
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
        if not library.sim_events(machine.handle) and not machine.watched:
            return _STOPS[status]
        events = view(
            library.sim_event(machine.handle), header.EVENT, library.sim_events(machine.handle)
        )
        lanes = self._lanes(program, handle) - lanes_before
        by_all = lanes >= math.prod((*launch.grid, *launch.block))
        parameters = laid_out(self._module.functions[launch.kernel].params)
        given = [
            int.from_bytes(launch.params[each.offset :][: each.size], "little")
            for each in parameters
        ]
        starts = [each.offset for each in parameters]
        about = program, self._module.locations, machine.names
        scene = Scene(*about, launch, given, starts, events, by_all)
        if machine.watched:
            number = machine.launched + len(run.blocks)
            writes, left_out = watched_writes(self._engine, machine, scene, number)
            run.writes += writes
            run.left_out += left_out
        found = (finding(event, scene) for event in events)
        run.findings += [each for each in found if each is not None]
        library.sim_clear_events(machine.handle)
        return _STOPS[status]

    def _lanes(self, program: EngineProgram, handle: int) -> Any:
        """How often lanes have executed each instruction, in all launches of the program."""
        blocks = self._engine.library.sim_blocks(handle)
        return view(blocks, header.FLOW, program.length)["lanes"]

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

    def _refusal(self, error: UnsupportedInstruction, plan: Plan) -> RefusedProgram:
        note = instruction_note(self._module, FindingKind.UNSUPPORTED, error.why, error.instruction)
        found = (note, *self.tensor_cores([plan]))
        return RefusedProgram(Reason.UNSUPPORTED, error.why, found, note.place)


def trapped(findings: Sequence[Finding]) -> bool:
    ends = {Event.NO_FUNCTION, Event.BRANCH_OUT_OF_TABLE}
    return any(each.kind is FindingKind.TRAP or each.event in ends for each in findings)
