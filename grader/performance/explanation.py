"""Why a kernel is as fast as it is: counts, bounds, advice. Needs no GPU.

``explain_speed`` has the simulator count a few blocks of the largest timed size
(ptxsim/sampling.py) and joins the counts with the machine code (join.py). It bounds the speed on a
GPU (bound.py), for which an issue model runs the main loop (waiting.py), and looks for the next
idea (advice/).
docs/explain.md says what is modelled and what is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from grader.backends.simulator.device import CpuDevice
from grader.backends.simulator.engine_library import engine_library
from grader.errors import GraderError, MachineError, ToolchainError
from grader.hardware import gpus
from grader.hardware.gpus import Gpu
from grader.model import (
    Advice,
    Bound,
    Build,
    Explanation,
    KernelCounts,
    Message,
    Plan,
    Tile,
    phrase,
)
from grader.performance.accesses import accesses
from grader.performance.advice import advise
from grader.performance.banks import Conflict, worst
from grader.performance.bound import bound
from grader.performance.facts import Facts, KernelFacts, Words
from grader.performance.join import count, executions
from grader.performance.loop_steps import MainLoop, main_loop_steps
from grader.performance.sass import Function, Instruction, main_loop_code, summarise
from grader.performance.shared_accesses import SharedAccess, shared_accesses
from grader.problems.operands import Operand
from grader.problems.problem import Problem
from grader.problems.work import Work
from ptxsim.engine import load_engine
from ptxsim.sampling import LaunchSample

__all__ = ["explain_speed", "unexplained"]

_OLDEST = 70  # before Volta, machine code had another form
_CONFLICTS_NOTICED = 0.2  # extra wavefronts for each that is needed


def explain_speed(
    build: Build,
    source_root: str,
    plan: Plan,
    problem: Problem,
    code: Callable[[], tuple[Function, ...]],
    simulator: CpuDevice,
    *,
    gpu: Gpu | None = None,
) -> Explanation:
    """plan: of the size to explain. code: disassembles the build; () without a disassembler.
    gpu: graded on; None for a few known ones.

    What cannot be found out is said in ``missing``.
    """
    work = problem.at(plan.size)
    functions: tuple[Function, ...] = ()
    counts: tuple[KernelCounts, ...] = ()
    loops: tuple[MainLoop | None, ...] = ()
    launches: list[tuple[Function, LaunchSample]] = []
    missing: Message | None = None
    with ThreadPoolExecutor(max_workers=1) as pool:
        sampled = pool.submit(
            simulator.sample, build, source_root, plan, lambda _stage, _detail: None
        )
        try:
            if gpus.capability_of(build.arch) < _OLDEST:
                raise ToolchainError(
                    phrase("the model of machine code begins with sm_{oldest}", oldest=_OLDEST)
                )
            functions = code()
            if not functions:
                raise ToolchainError(
                    phrase("there is no nvdisasm; grade doctor says how to get it")
                )
            launches = [(_named(functions, each.kernel), each) for each in sampled.result()]
            counts = tuple(count(*launch, work) for launch in launches)
            loops = tuple(main_loop_steps(*launch, work) for launch in launches)
            missing = None if counts else phrase("it launches too many kinds of kernels")
        except GraderError as error:
            missing = error.message
    shown = (gpu,) if gpu else tuple(each for each in gpus.known() if each.name in gpus.SHOWN)
    return Explanation(
        arch=build.arch,
        size=plan.size.dims,
        operations=work.operations,
        bytes=work.bytes,
        kernels=tuple(summarise(function) for function in functions if function.entry),
        counts=counts,
        tile=_tile(counts, problem.operands(plan.size)[plan.inputs]),
        bounds=tuple(_bounds(counts, loops, build, work, shown)),
        advice=_advice(counts, loops, launches, build, work, gpu or _like(build.arch), problem),
        missing=missing,
    )


def unexplained(build: Build, work: Work, missing: Message) -> Explanation:
    """missing: why."""
    return Explanation(
        arch=build.arch,
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


def _named(functions: Sequence[Function], kernel: str) -> Function:
    found = next((function for function in functions if function.name == kernel), None)
    if found is None:
        raise MachineError(phrase("the machine code lacks {kernel}", kernel=kernel))
    return found


def _bounds(
    counts: Sequence[KernelCounts],
    loops: Sequence[MainLoop | None],
    build: Build,
    work: Work,
    shown: Sequence[Gpu],
) -> list[Bound]:
    kernels = {kernel.name: kernel for kernel in build.kernels}
    found = (bound(counts, kernels, work, gpu, loops) for gpu in shown)
    return [each for each in found if each is not None]


def _like(arch: str) -> Gpu:
    """A GPU that runs this machine code as it is, or else the first of the table."""
    known = gpus.known()
    capability = gpus.capability_of(arch)
    return next((each for each in known if each.capability == capability), known[0])


def _main(counts: Sequence[KernelCounts]) -> KernelCounts | None:
    """The launch that does most of the work."""
    return max(counts, key=lambda each: each.flops, default=None)


def _tile(counts: Sequence[KernelCounts], target: Operand) -> Tile | None:
    most = _main(counts)
    if most is None:
        return None
    threads = most.block[0] * most.block[1] * most.block[2]
    blocks = most.grid[0] * most.grid[1] * most.times
    # blockIdx.x runs along the index whose elements are neighbours in memory.
    shape = target.shape if target.order == "col" else target.shape[::-1]
    shown = (
        len(shape) == 2
        and most.grid[1] > 1
        and not shape[0] % most.grid[0]
        and not shape[1] % most.grid[1]
    )
    edges = [shape[axis] // most.grid[axis] for axis in (0, 1)] if shown else [None, None]
    rows, columns = edges if target.order == "col" else edges[::-1]
    return Tile(
        rows=rows,
        columns=columns,
        threads=threads,
        elements=target.count / blocks / threads,
    )


def _advice(
    counts: Sequence[KernelCounts],
    loops: Sequence[MainLoop | None],
    launches: Sequence[tuple[Function, LaunchSample]],
    build: Build,
    work: Work,
    gpu: Gpu,
    problem: Problem,
) -> tuple[Advice, ...]:
    most = _main(counts)
    kernel = next((k for k in build.kernels if most and k.name == most.name), None)
    if most is None or kernel is None:
        return ()
    index = counts.index(most)
    steps, (function, sample) = loops[index], launches[index]
    sass = summarise(function)
    code = main_loop_code(function)
    shared = _shared(function, sample, code)
    facts = KernelFacts(
        words=Words(
            inputs=tuple(each.name for each in problem.operands(work.size) if each.role == "in"),
            output=problem.output,
            depth=problem.depth,
            ladder=problem.interface.main.partition(".")[0],
        ),
        work=work,
        gpu=gpu,
        kernel=kernel,
        function=function.instructions,
        code=code,
        counts=most,
        launches=sum(each.times for each in counts),
        shared=shared,
        conflict=_conflict(shared, sass.loop.unroll if sass.loop else 1),
    )
    if sass.loop is not None:
        facts = Facts(
            **{name: getattr(facts, name) for name in facts.__struct_fields__},
            sass=sass,
            loop=sass.loop,
            steps=steps,
            now=bound([most], {kernel.name: kernel}, work, gpu, [steps]),
        )
    return advise(facts, problem.advice)


def _shared(
    function: Function, sample: LaunchSample, code: Sequence[Instruction]
) -> tuple[SharedAccess, ...]:
    rows = {row.row: row for row in sample.rows}
    return shared_accesses(accesses(function, rows, executions(function, rows)), code)


def _conflict(shared: Sequence[SharedAccess], unroll: int) -> Conflict | None:
    """None where conflicts cost little."""
    ideal = sum(each.requests * each.ideal for each in shared)
    if sum(each.extra for each in shared) < _CONFLICTS_NOTICED * ideal:
        return None
    return worst(shared, unroll, load_engine(engine_library().compiled()))
