"""Facts for advice rules: counts, code, and both models; and what rules have in common."""

import math
from collections.abc import Callable, Sequence
from itertools import dropwhile
from pathlib import Path
from typing import Any

import msgspec

from grader import base
from grader.base import CardFigures, Sentences
from grader.build import SassInstruction
from grader.model.accesses import WORD, MemoryAccess, SharedAccess
from grader.model.banks import Conflict, Remedy
from grader.model.bound import bound
from grader.model.loop_steps import LoopStep, MainLoop, Pipe
from grader.model.records import (
    Advice,
    BankMap,
    Bound,
    KernelCounts,
    KnownRung,
    SassLoop,
    Split,
    Traffic,
    Waiting,
)
from grader.problems import Work
from ptxsim.plan import Place, Record
from ptxsim.text import Message, enumerated, verbatim

SENTENCES = Sentences.of(Path(__file__).parent / "advice" / "sentences.toml")
say = SENTENCES.say
_NOTICED = 1.02  # a smaller gain is within what the model leaves out
_NEAR = 1.25


class Words(Record):
    """The problem's words for things."""

    inputs: tuple[str, ...]  # operands: "A", "B"
    output: str  # "C"
    depth: str  # along what the main loop runs: "K"

    @property
    def all_inputs(self) -> Message:
        """``A and B``."""
        return enumerated(map(verbatim, self.inputs))


class KernelFacts(Record, kw_only=True):
    """Facts for a rule, about the launch that does most of the work."""

    words: Words
    work: Work
    gpu: base.gpus.Gpu
    cards: tuple[CardFigures, ...] = ()  # what a course measured of its own
    rungs: tuple[KnownRung, ...] = ()  # of its ladder, in order
    causes: tuple[str, ...] = ()  # of the speed, as the report states them: ``Bound.causes``
    kernel: base.KernelInfo
    function: tuple[SassInstruction, ...]  # all of the kernel
    code: tuple[SassInstruction, ...] = ()  # of the main loop
    counts: KernelCounts
    launches: int  # of a call, of every kind
    shared: tuple[SharedAccess, ...] = ()  # those whose addresses are known
    conflict: Conflict | None = None  # the worst of them
    scattered: MemoryAccess | None = None  # the access to global memory with most extra sectors

    def say(self, rule: str, /, **figures: int | float | str | Message) -> Message:
        """Return the sentence of a rule, in the problem's words for things."""
        said = say(f"rule.{rule}", **figures)
        known: dict[str, int | float | str | Message] = {
            **{"output": self.words.output, "depth": self.words.depth, "gpu": self.gpu.name},
            **{"inputs": self.words.all_inputs, "sms": self.gpu.multiprocessors},
            **{"unit": self.work.unit.name, **figures},
        }
        return said.given(**{name: of for name, of in known.items() if f"{{{name}" in said.text})

    def executed(self, *kinds: str) -> int:
        """Warp instructions of these kinds; "LDS" stands for every width."""
        return sum(
            entry.count
            for entry in self.counts.mix
            if entry.kind in kinds or entry.kind.split(".")[0] in kinds
        )

    def near_the_limit(self, resource: str) -> bool:
        """Whether less use of this resource could make the kernel faster, now or soon."""
        units = {name: speed for name, speed in self.speeds().items() if name != "latency"}
        return resource in units and units[resource] <= _NEAR * min(units.values())

    def speeds(self) -> dict[str, float]:
        """Return the speed that each resource allows."""
        now = self.bound()
        return {limit.resource: limit.speed for limit in now.limits} if now else {}

    def bound(
        self,
        loop: MainLoop | None = None,
        /,
        kernel: base.KernelInfo | None = None,
        **changes: object,
    ) -> Bound | None:
        """Return the bound of the counts after ``changes``; with ``loop``, the estimate too."""
        counts = msgspec.structs.replace(self.counts, **changes)
        kernels = {self.kernel.name: kernel or self.kernel}
        return bound([counts], kernels, self.work, self.gpu, [loop], cards=self.cards)

    def gain(self, **changes: Any) -> float | None:
        """How the bound grows when the counts change so."""
        return _noticed(self.bound(), self.bound(**changes))

    @property
    def warps(self) -> int:
        """Warps that the launches of this kind start."""
        counts = self.counts
        return math.prod(counts.grid) * -(-math.prod(counts.block) // 32) * counts.times

    def blocks_that_fit(self) -> int:
        """Return how many blocks a multiprocessor holds; 0 when not even one."""
        fits = base.gpus.occupancy(self.gpu.multiprocessor, self.kernel, self.counts)
        return fits.blocks if fits else 0


class Facts(KernelFacts, kw_only=True):
    """All facts, if the kernel has a main loop: one that multiplies and adds."""

    loop: SassLoop
    steps: MainLoop | None  # of the main loop and its surroundings
    now: Bound | None  # with the issue model of ``steps``

    def each(self, *kinds: str) -> float:
        """Return the executions of instructions of these kinds per FFMA."""
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

    def say_waits(self, rule: str, /, **figures: float) -> Message:
        """Return that sentence, with what the issue model says of a warp's time if it ran."""
        if (found := self.waiting) is None:
            return self.say(rule, **figures)
        loads, barriers = 100 * found.warp_global_loads, 100 * found.warp_barriers
        return self.say(f"{rule}-waiting", loads=loads, barriers=barriers, **figures)

    def gain_if(
        self, relieved: Callable[[LoopStep], LoopStep | None], **changes: Any
    ) -> float | None:
        """How the bound grows when every step of the loop becomes what ``relieved`` says, None for
        one that goes away, and the counts change so."""
        if self.steps is None or self.now is None:
            return None
        left = tuple(step for each in self.steps.steps if (step := relieved(each)))
        changed = msgspec.structs.replace(self.steps, steps=left)
        return _noticed(self.now, self.bound(changed, **changes))


def _noticed(now: Bound | None, then: Bound | None) -> float | None:
    factor = then.speed / now.speed if now and then else 0.0
    return factor if factor >= _NOTICED else None


def scaled(traffic: Traffic, factor: float) -> Traffic:
    names = Traffic.__struct_fields__
    return Traffic(**{name: round(getattr(traffic, name) * factor) for name in names})


def at_once(step: LoopStep) -> LoopStep:
    """The step, if the result of its load from global memory were there at once."""
    if step.unit is not Pipe.LINES:
        return step
    return msgspec.structs.replace(step, sectors=0.0, latency=1)


# --- what rules share -------------------------------------------------------------------------

BLOCKED = 16  # elements per thread; below that, how tiles are loaded matters little


def advice(
    facts: KernelFacts, idea: str, message: Message, *bases: str, gain: float | None = None
) -> Advice:
    """Advice about the first instruction of these kinds, in the main loop or else in the kernel, or
    about the first line of either. Where the idea's own rung is a trap, or was slower when it was
    measured, the next one that pays shows it together with what it needs."""
    later = list(dropwhile(lambda each: not each.name.endswith(f"_{idea}"), facts.rungs))
    rung = next((each.name for each in later if each.pays), None)
    placed = [
        item for part in (facts.code, facts.function) for item in part if item.line is not None
    ]
    at = next((item for item in placed if item.base in bases), next(iter(placed), None))
    file, line = (at.file, at.line) if at else (None, None)
    return Advice(
        idea=idea,
        rung=rung,
        message=message,
        file=file,
        line=line,
        gain=gain,
        measured=later[0].gain if later else None,
    )


def placed(said: Advice, at: Split | SharedAccess | SassInstruction | Place) -> Advice:
    """The same about the line of ``at``, where it is known, and the banks of a shared access."""
    if isinstance(at, SharedAccess):
        banks = BankMap(lanes=at.lanes, width=max(at.width // WORD, 1))
        said = msgspec.structs.replace(said, banks=banks)
    if at.line is None:
        return said
    return msgspec.structs.replace(said, file=at.file, line=at.line)


def describe_remedy(remedy: Remedy) -> Message:
    """The remedy, and how many of the extra wavefronts it leaves."""
    kept = 100 * remedy.kept
    return say("remedy.part" if kept else "remedy.whole", remedy=remedy.words, kept=kept)


def work_while_loading(
    loop: Sequence[SassInstruction], works: Callable[[SassInstruction], bool], load: str = "LDG"
) -> int | None:
    """Return the fewest instructions that work between a load into registers and the first that
    waits for it, in this iteration or the next. None without such a load or control bits."""
    twice = [*loop, *loop]
    found = []
    for index, item in enumerate(loop):
        if item.base != load or item.control is None:
            continue
        board = item.control.write_barrier
        work = 0
        for later in twice[index + 1 : index + 1 + len(loop)]:
            if later.control is not None and board in later.control.waits:
                found.append(work)
                break
            work += works(later)
    return min(found, default=None)


def waits_to_store(loop: Sequence[SassInstruction]) -> bool:
    """Whether the loop only fills shared memory between two barriers, without computing."""
    barriers = [index for index, item in enumerate(loop) if item.base == "BAR"]
    if len(barriers) < 2:
        return False
    turned = [*loop[barriers[0] :], *loop[: barriers[0]]]
    parts: list[set[str]] = []
    for item in turned:
        if item.base == "BAR":
            parts.append(set())
        parts[-1].add(item.base)
    return any("STS" in part and "FFMA" not in part for part in parts)
