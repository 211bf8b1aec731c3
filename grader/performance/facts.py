"""What an advice rule may ask: counts, code, and both models."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from grader.hardware.gpus import Gpu
from grader.model import (
    Bound,
    KernelCounts,
    KernelInfo,
    KernelSass,
    Mnk,
    Record,
    SassLoop,
    Waiting,
)
from grader.performance.banks import Conflict
from grader.performance.bound import bound
from grader.performance.loop_steps import MainLoop, Step
from grader.performance.sass import Instruction
from grader.performance.shared_accesses import SharedAccess
from grader.performance.structure import place

_NOTICED = 1.02  # a smaller gain is within what the model leaves out


class Facts(Record):
    """All facts for a rule, about the launch that does most of the work."""

    size: Mnk
    gpu: Gpu
    kernel: KernelInfo
    sass: KernelSass
    loop: SassLoop
    code: tuple[Instruction, ...]  # of the main loop
    function: tuple[Instruction, ...]  # all of the kernel
    counts: KernelCounts
    steps: MainLoop | None  # of the main loop and its surroundings
    now: Bound | None  # with the issue model of ``steps``
    shared: tuple[SharedAccess, ...] = ()  # those whose addresses are known
    conflict: Conflict | None = None  # the worst of them

    def executed(self, *kinds: str) -> int:
        """Warp instructions of these kinds; "LDS" stands for every width."""
        return sum(
            entry.count
            for entry in self.counts.mix
            if entry.kind in kinds or entry.kind.split(".")[0] in kinds
        )

    def each(self, *kinds: str) -> float:
        """The same per FFMA."""
        return self.executed(*kinds) / max(self.executed("FFMA"), 1)

    def where(self, *bases: str) -> tuple[str | None, int | None]:
        return place(self.code, self.function, bases)

    def gain(self, **changes: object) -> float | None:
        """How the bound grows when the counts change so."""
        kernels = {self.kernel.name: self.kernel}
        now = bound([self.counts], kernels, self.size, self.gpu)
        changed = msgspec.structs.replace(self.counts, **changes)
        then = bound([changed], kernels, self.size, self.gpu)
        if now is None or then is None:
            return None
        factor = then.tflops / now.tflops
        return factor if factor >= _NOTICED else None

    @property
    def waiting(self) -> Waiting | None:
        """The reasons for waiting in the issue model."""
        return self.now.waiting if self.now else None

    def gain_if(self, relieved: Callable[[Step], Step]) -> float | None:
        """How the bound grows when every step of the loop becomes what ``relieved`` says."""
        if self.steps is None or self.now is None:
            return None
        changed = msgspec.structs.replace(
            self.steps, steps=tuple(relieved(step) for step in self.steps.steps)
        )
        then = bound([self.counts], {self.kernel.name: self.kernel}, self.size, self.gpu, [changed])
        if then is None:
            return None
        factor = then.tflops / self.now.tflops
        return factor if factor >= _NOTICED else None
