"""Why a kernel is as fast as it is: counts, bounds, advice. What is modelled: docs/explain.md."""

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from operator import sub

import msgspec

from grader import base
from grader.build import SassFunction
from grader.model.accesses import MemoryAccess, accesses, most_moving, shared_accesses
from grader.model.advice import advise
from grader.model.banks import worst
from grader.model.bound import bound
from grader.model.facts import Facts, KernelFacts, Words
from grader.model.join import count, executions, factors, unfounded
from grader.model.loop_steps import MainLoop, main_loop_steps
from grader.model.main_loop import main_loop_code, summarise
from grader.model.records import (
    NO_COPIES,
    Advice,
    Explanation,
    HostCopies,
    KernelCounts,
    KnownRung,
    Tile,
)
from grader.problems import Operand, Problem, Work
from ptxsim import Engine
from ptxsim.findings import LaunchSample
from ptxsim.plan import Size
from ptxsim.text import Message, phrase

_MOST_WORK = 4_000_000  # squares of the basic blocks of all launches: some ten seconds
_CONFLICTS_NOTICED = 0.2  # extra wavefronts for each that is needed


def explain_speed(
    arch: str,
    kernels: Mapping[str, base.KernelInfo],
    functions: Sequence[SassFunction],
    samples: Sequence[LaunchSample],
    size: Size,
    problem: Problem,
    engine: Engine,
    *,
    missing: Message | None = None,
    copies: HostCopies = NO_COPIES,
    gpu: base.gpus.Gpu | None = None,
    cards: Sequence[base.CardFigures] = (),
    rungs: Iterable[KnownRung] = (),
) -> Explanation:
    """Join the counts with the machine code, and say what follows.

    arch: of the build, "sm_90"; kernels: as built, by mangled name; functions: its machine code, as
    far as it could be read; samples: counts of the launches at this size. engine: knows shared
    memory's banks. missing: why there are no samples. copies: of the same call. gpu: graded on;
    None for a few known ones. cards: what a course measured of its own. rungs: of the problem's
    ladder, in order. What cannot be found out is said in ``missing``.
    """
    work = problem.at(size)
    counts: tuple[KernelCounts, ...] = ()
    loops: tuple[MainLoop | None, ...] = ()
    named = {function.name: function for function in functions}
    launches = [(named[each.kernel], each) for each in samples if each.kernel in named]
    missing = missing or _unusable(launches, samples)
    if missing is None:
        by = factors(samples, work)
        missing = unfounded(samples, by, work)
        if not missing:
            counts = tuple(count(*each, by[k]) for k, each in enumerate(launches))
            loops = tuple(main_loop_steps(*each, by[k]) for k, each in enumerate(launches))
    shown = (gpu,) if gpu else base.gpus.shown(arch)
    of_call = (counts, kernels, work)
    bounds = (bound(*of_call, each, loops, copies=copies, cards=cards) for each in shown)
    found = msgspec.structs.replace(
        unexplained(arch, work, missing),
        kernels=tuple(summarise(function) for function in functions if function.entry),
        counts=counts,
        bounds=tuple(each for each in bounds if each is not None),
    )
    # Advice and the tile are about the launch that does most of the work.
    most = max(range(len(counts)), key=lambda index: counts[index].flops, default=None)
    if most is None:
        return found
    # The report states the limit on the first of the GPUs.
    stated = next(iter(found.bounds), None)
    card = next((each for each in shown if stated and each.name == stated.gpu), shown[0])
    function, sample = launches[most]
    rows = {row.row: row for row in sample.rows}
    moving = tuple(accesses(function, rows, executions(function, rows)))
    about = (counts, most, loops[most], (function, moving), kernels, work, card, cards)
    advice = _advice(*about, rungs, stated.causes if stated else (), problem, engine)
    output = next(each for each in problem.operands(size) if each.written)
    tile, drawn = _tile(counts[most], output), tuple(most_moving(moving))
    return msgspec.structs.replace(found, tile=tile, advice=advice, accesses=drawn)


def _unusable(
    launches: Sequence[tuple[SassFunction, LaunchSample]], samples: Sequence[LaunchSample]
) -> Message | None:
    """Return why these counts explain nothing, or None."""
    known = {function.name for function, _ in launches}
    for each in samples:
        if each.kernel not in known:
            return phrase("the machine code lacks {kernel}", kernel=each.kernel)
    if sum(len(function.blocks) ** 2 for function, _ in launches) > _MOST_WORK:
        return phrase("its kernels have too many branches to be followed")
    return None


def unexplained(arch: str, work: Work, missing: Message | None) -> Explanation:
    """Return what is known without counts. missing: why there are none."""
    return Explanation(
        arch=arch,
        size=work.size.dims,
        operations=work.operations,
        bytes=work.bytes,
        kernels=(),
        counts=(),
        tile=None,
        bounds=(),
        advice=(),
        missing=missing,
    )


def _tile(counts: KernelCounts, target: Operand) -> Tile:
    """The part of the output that a block computes; its edges if it is clear from the grid."""
    threads = prod(counts.block)
    across, down = counts.grid[:2]
    # blockIdx.x runs along the index whose elements are neighbours in memory.
    shape = target.shape if target.order == "col" else target.shape[::-1]
    shown = len(shape) == 2 and down > 1 and not shape[0] % across and not shape[1] % down
    edges = (shape[0] // across, shape[1] // down) if shown else (None, None)
    rows, columns = edges if target.order == "col" else edges[::-1]
    elements = target.count / (across * down * counts.times) / threads
    return Tile(rows=rows, columns=columns, threads=threads, elements=elements)


def _advice(
    counts: Sequence[KernelCounts],
    most: int,
    steps: MainLoop | None,
    launch: tuple[SassFunction, Sequence[MemoryAccess]],
    kernels: Mapping[str, base.KernelInfo],
    work: Work,
    gpu: base.gpus.Gpu,
    cards: Sequence[base.CardFigures],
    rungs: Iterable[KnownRung],
    causes: tuple[str, ...],
    problem: Problem,
    engine: Engine,
) -> tuple[Advice, ...]:
    """most: the place among ``counts`` that ``steps`` and ``launch`` are about."""
    kernel = kernels.get(counts[most].name)
    if kernel is None:
        return ()
    function, moving = launch
    loop = summarise(function).loop
    code = main_loop_code(function)
    shared = shared_accesses(moving, code)
    conflict = None  # where conflicts cost little, too
    ideal = sum(each.requests * each.ideal for each in shared)
    if sum(each.extra for each in shared) >= _CONFLICTS_NOTICED * ideal:
        conflict = worst(shared, loop.unroll if loop else 1, engine)
    facts = KernelFacts(
        words=Words(
            inputs=tuple(each.name for each in problem.operands(work.size) if each.given),
            output=problem.output,
            depth=problem.depth,
        ),
        work=work,
        gpu=gpu,
        cards=tuple(cards),
        rungs=tuple(rungs),
        causes=causes,
        kernel=kernel,
        function=function.instructions,
        code=code,
        counts=counts[most],
        launches=sum(each.times for each in counts),
        shared=shared,
        conflict=conflict,
        scattered=max(moving, key=lambda each: each.requests * sub(*each.sectors), default=None),
    )
    if loop is not None:
        known, now = msgspec.structs.asdict(facts), facts.bound(steps)
        facts = Facts(**known, loop=loop, steps=steps, now=now)
    return advise(facts, problem.advice)
