"""Single launches on memory that lives on."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ptxsim import engine_header as header
from ptxsim.engine import Engine
from ptxsim.findings.reports import merge
from ptxsim.frontend.linking import read_linked
from ptxsim.kernels import MOST_STEPS, ModuleKernels, Running
from ptxsim.lowering.called_functions import reachable_functions
from ptxsim.lowering.operation import UnsupportedInstruction
from ptxsim.machine import Machine, judge_races
from ptxsim.orders import in_reverse
from ptxsim.outcome import SimLimits, SimOutcome
from ptxsim.plan.records import Launch, Plan, Size
from ptxsim.soundness import check_plan


class LivingKernels(ModuleKernels):
    """Kernels whose launches work on one memory, which others write to in between."""

    def __init__(self, texts: Sequence[str], source_root: Path, engine: Engine) -> None:
        """texts: PTX, which is linked if there are several."""
        ptx = texts[0] if len(texts) == 1 else read_linked(texts, source_root)
        super().__init__(ptx, source_root, engine)
        self._running: Running | None = None

    def use_cells(self, cell: int) -> None:
        """Work on memory of which one of ``cell`` bytes is a cell."""
        if cell != self.global_cell:
            self.global_cell = cell
            self._programs.clear()
            if self._running:
                self._free_programs(self._running)

    def close(self) -> None:
        """Free what the engine holds, but for the memory."""
        if self._running:
            self._free_programs(self._running)
        self._running = None

    def carry_out(self, machine: Machine, launch: Launch, limits: SimLimits) -> SimOutcome:
        """Execute one launch on memory that lives on, and count nothing. Raises what ``run``
        raises."""
        plan = Plan(size=Size.of(), allocations=(), operations=(launch,))
        run = self._running = self._running or Running(machine)

        def look(limits: SimLimits) -> SimOutcome:
            run.begin_look()
            printed = len(self._engine.library.sim_printed(machine.handle))
            stopped = self._launch(run, launch, limits.steps or MOST_STEPS, limits.seconds)
            early = [each for each in run.findings if each.event and each.event.needs_difference]
            others = [each for each in run.findings if each not in early]
            text = self._engine.library.sim_printed(machine.handle)[printed:]
            return SimOutcome(
                findings=merge(others),
                early=merge(early),
                lines=(),
                stopped=stopped,
                seconds=0.0,
                printed=text.decode(errors="replace"),
                writes=tuple(run.writes),
                writes_left_out=run.left_out,
            )

        try:
            check_plan(plan, self._module, self.variables, limits.bytes)
            return in_reverse(machine, limits, look, judge_races(machine, limits, look))
        except UnsupportedInstruction as error:
            raise self._refusal(error, plan) from None

    def recall(self, machine: Machine, launch: Launch) -> bool:
        """Whether the launch finds in memory what an equal one did, and so has nothing to do that
        is not done now. If not, it has to be carried out next."""
        asked = msgspec.msgpack.encode((id(self), launch))  # another module may have its name
        status: int = self._engine.library.sim_recall(machine.handle, asked, len(asked))
        return status == header.RAN

    def instructions(self, kernel: str) -> int:
        """How many the kernel has, with the functions that it calls by name."""
        return sum(len(each.body) for each in reachable_functions(self._module, kernel))

    def shared_bytes(self, kernel: str, addresses: Mapping[str, int]) -> int:
        """Bytes of shared memory that a block of the kernel has in any case, without those that
        the system keeps in front of them. Raises RefusedProgram."""
        try:
            program = self._program(kernel, addresses)
            own = program.arrays[1 if program.packed["reserved_bytes"] else 0]
            return int(program.packed["shared_bytes"]) - own.start
        except UnsupportedInstruction as error:
            nothing = Plan(size=Size.of(), allocations=(), operations=())
            raise self._refusal(error, nothing) from None
