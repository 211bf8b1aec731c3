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
    Message,
    Record,
    SassLoop,
    Waiting,
    enumerated,
    verbatim,
)
from grader.performance.banks import Conflict
from grader.performance.bound import bound
from grader.performance.loop_steps import MainLoop, Step
from grader.performance.sass import Instruction
from grader.performance.shared_accesses import SharedAccess
from grader.performance.structure import place
from grader.problems.work import Work

_NOTICED = 1.02  # a smaller gain is within what the model leaves out
_NEAR = 1.25


class Words(Record):
    """What the problem calls things."""

    inputs: tuple[str, ...]  # operands: "A", "B"
    output: str  # "C"
    depth: str  # along what the main loop runs: "K"
    ladder: str  # folder of reference/ with the rungs that show ideas: "sgemm"

    @property
    def all_inputs(self) -> Message:
        """``A and B``."""
        return enumerated(map(verbatim, self.inputs))


class KernelFacts(Record, kw_only=True):
    """Facts for a rule, about the launch that does most of the work."""

    words: Words
    work: Work
    gpu: Gpu
    kernel: KernelInfo
    function: tuple[Instruction, ...]  # all of the kernel
    code: tuple[Instruction, ...] = ()  # of the main loop
    counts: KernelCounts
    launches: int  # of a call, of every kind
    shared: tuple[SharedAccess, ...] = ()  # those whose addresses are known
    conflict: Conflict | None = None  # the worst of them

    def executed(self, *kinds: str) -> int:
        """Warp instructions of these kinds; "LDS" stands for every width."""
        return sum(
            entry.count
            for entry in self.counts.mix
            if entry.kind in kinds or entry.kind.split(".")[0] in kinds
        )

    def where(self, *bases: str) -> tuple[str | None, int | None]:
        return place(self.code, self.function, bases)

    def near_the_limit(self, resource: str) -> bool:
        """Whether less use of this resource could make the kernel faster, now or soon."""
        speeds = self.speeds()
        return resource in speeds and speeds[resource] <= _NEAR * min(speeds.values())

    def speeds(self) -> dict[str, float]:
        """What each resource allows."""
        now = bound([self.counts], {self.kernel.name: self.kernel}, self.work, self.gpu)
        return {limit.resource: limit.speed for limit in now.limits} if now else {}

    def gain(self, **changes: object) -> float | None:
        """How the bound grows when the counts change so."""
        kernels = {self.kernel.name: self.kernel}
        now = bound([self.counts], kernels, self.work, self.gpu)
        changed = msgspec.structs.replace(self.counts, **changes)
        then = bound([changed], kernels, self.work, self.gpu)
        if now is None or then is None:
            return None
        factor = then.speed / now.speed
        return factor if factor >= _NOTICED else None


class Facts(KernelFacts, kw_only=True):
    """All facts, if the kernel has a main loop: one that multiplies and adds."""

    sass: KernelSass
    loop: SassLoop
    steps: MainLoop | None  # of the main loop and its surroundings
    now: Bound | None  # with the issue model of ``steps``

    def each(self, *kinds: str) -> float:
        """What is executed of these kinds, per FFMA."""
        return self.executed(*kinds) / max(self.executed("FFMA"), 1)

    @property
    def products(self) -> int:
        """HMMA that are executed."""
        return sum(each.count for each in self.counts.tensor if not each.by_warpgroup)

    @property
    def by_warpgroups(self) -> bool:
        """Whether it uses wgmma."""
        return any(each.by_warpgroup for each in self.counts.tensor)

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
        then = bound([self.counts], {self.kernel.name: self.kernel}, self.work, self.gpu, [changed])
        if then is None:
            return None
        factor = then.speed / self.now.speed
        return factor if factor >= _NOTICED else None
