"""Why a kernel is as fast as it is: counts, bounds, advice. Needs no GPU.

``explain_speed`` has the simulator count a few blocks of the largest timed size and joins the
counts with the machine code; docs/explain.md says what is modelled, and where.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import prod
from pathlib import Path

import msgspec

from grader import base
from grader.build import Toolchain, cache
from grader.model.accesses import accesses, shared_accesses
from grader.model.advice import advise
from grader.model.banks import worst
from grader.model.bound import bound
from grader.model.calibration import FITTED, course_cards
from grader.model.facts import Facts, KernelFacts, Words
from grader.model.join import count, executions, factors, unfounded
from grader.model.loop_steps import MainLoop, main_loop_steps
from grader.model.main_loop import main_loop_code, summarise
from grader.build.sass import SassFunction
from grader.problems import Operand, Problem, Work
from grader.run import CpuDevice, engine_library, quietly
from ptxsim import load_engine
from ptxsim.findings import LaunchSample
from ptxsim.plan import Launch, Plan
from ptxsim.text import Message, phrase

_OLDEST = 70  # before Volta, machine code had another form
_MOST_WORK = 4_000_000  # squares of the basic blocks of all launches: some ten seconds
_CONFLICTS_NOTICED = 0.2  # extra wavefronts for each that is needed


def explain_speed(
    build: base.Build,
    source_root: str,
    plan: Plan,
    problem: Problem,
    code: Callable[[], tuple[SassFunction, ...]],
    simulator: CpuDevice,
    *,
    gpu: base.Gpu | None = None,
) -> base.Explanation:
    """plan: of the size to explain. code: disassembles the build; () without a disassembler.
    gpu: graded on; None for a few known ones.

    What cannot be found out is said in ``missing``.
    """
    work = problem.at(plan.size)
    functions: tuple[SassFunction, ...] = ()
    counts: tuple[base.KernelCounts, ...] = ()
    loops: tuple[MainLoop | None, ...] = ()
    launches: list[tuple[SassFunction, LaunchSample]] = []
    missing: Message | None = None
    with ThreadPoolExecutor(max_workers=1) as pool:
        sampled = pool.submit(simulator.sample, build, source_root, plan, quietly)
        try:
            if base.gpus.capability_of(build.arch) < _OLDEST:
                raise base.ToolchainError(
                    phrase("the model of machine code begins with sm_{oldest}", oldest=_OLDEST)
                )
            functions = code()
            if not functions:
                raise base.ToolchainError(
                    phrase("there is no nvdisasm; grade doctor says how to get it")
                )
            named = {function.name: function for function in functions}
            for each in sampled.result():
                if each.kernel not in named:
                    lacks = phrase("the machine code lacks {kernel}", kernel=each.kernel)
                    raise base.MachineError(lacks)
                launches.append((named[each.kernel], each))
            if sum(len(function.blocks) ** 2 for function, _ in launches) > _MOST_WORK:
                raise base.MachineError(phrase("its kernels have too many branches to be followed"))
            samples = [each for _, each in launches]
            by = factors(samples, work)
            missing = unfounded(samples, by, work)
            if not missing:
                counts = tuple(count(*each, by[k]) for k, each in enumerate(launches))
                loops = tuple(main_loop_steps(*each, by[k]) for k, each in enumerate(launches))
            if not launches:
                missing = (
                    phrase("it launches too many kinds of kernels")
                    if any(isinstance(each, Launch) for each in plan.operations)
                    else phrase("it launches no kernel")
                )
        except base.GraderError as error:
            missing = error.message
    shown = [gpu] if gpu else [each for each in base.gpus.known() if each.name in base.gpus.SHOWN]
    kernels = {each.name: each for each in build.info.kernels}
    bounds = (bound(counts, kernels, work, each, loops) for each in shown)
    found = msgspec.structs.replace(
        unexplained(build, work, missing),
        kernels=tuple(summarise(function) for function in functions if function.entry),
        counts=counts,
        bounds=tuple(each for each in bounds if each is not None),
    )
    # Advice and the tile are about the launch that does most of the work.
    most = max(range(len(counts)), key=lambda index: counts[index].flops, default=None)
    if most is None:
        return found
    card, loop = gpu or _like(build.arch), loops[most]
    advice = _advice(counts, most, loop, launches[most], kernels, work, card, problem)
    tile = _tile(counts[most], problem.operands(plan.size)[plan.inputs])
    return msgspec.structs.replace(found, tile=tile, advice=advice)


def _like(arch: str) -> base.Gpu:
    """A GPU that runs this machine code as it is, or else the first of the table."""
    known, capability = base.gpus.known(), base.gpus.capability_of(arch)
    return next((each for each in known if each.capability == capability), known[0])


def unexplained(build: base.Build, work: Work, missing: Message | None) -> base.Explanation:
    """Return what is known without counts. missing: why there are none."""
    return base.Explanation(
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


def _tile(counts: base.KernelCounts, target: Operand) -> base.Tile:
    """The part of the output that a block computes; its edges if it is clear from the grid."""
    threads = prod(counts.block)
    across, down = counts.grid[:2]
    # blockIdx.x runs along the index whose elements are neighbours in memory.
    shape = target.shape if target.order == "col" else target.shape[::-1]
    shown = len(shape) == 2 and down > 1 and not shape[0] % across and not shape[1] % down
    edges = (shape[0] // across, shape[1] // down) if shown else (None, None)
    rows, columns = edges if target.order == "col" else edges[::-1]
    elements = target.count / (across * down * counts.times) / threads
    return base.Tile(rows=rows, columns=columns, threads=threads, elements=elements)


def _advice(
    counts: Sequence[base.KernelCounts],
    most: int,
    steps: MainLoop | None,
    launch: tuple[SassFunction, LaunchSample],
    kernels: Mapping[str, base.KernelInfo],
    work: Work,
    gpu: base.Gpu,
    problem: Problem,
) -> tuple[base.Advice, ...]:
    """most: the place among ``counts`` that ``steps`` and ``launch`` are about."""
    kernel = kernels.get(counts[most].name)
    if kernel is None:
        return ()
    function, sample = launch
    loop = summarise(function).loop
    code = main_loop_code(function)
    rows = {row.row: row for row in sample.rows}
    shared = shared_accesses(accesses(function, rows, executions(function, rows)), code)
    conflict = None  # where conflicts cost little, too
    ideal = sum(each.requests * each.ideal for each in shared)
    if sum(each.extra for each in shared) >= _CONFLICTS_NOTICED * ideal:
        engine = load_engine(engine_library().compiled())
        conflict = worst(shared, loop.unroll if loop else 1, engine)
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
        counts=counts[most],
        launches=sum(each.times for each in counts),
        shared=shared,
        conflict=conflict,
    )
    if loop is not None:
        known, now = msgspec.structs.asdict(facts), facts.bound(steps)
        facts = Facts(**known, loop=loop, steps=steps, now=now)
    return advise(facts, problem.advice)


# --- explanation cache -------------------------------------------------------------------------


def explanation_key(
    build: base.Build, plan: Plan, problem: Problem, toolchain: Toolchain, gpu: base.Gpu | None
) -> str:
    """gpu: graded on; None for the few that are shown where there is none."""
    digest = hashlib.sha256()
    tool = toolchain.nvdisasm.stat() if toolchain.nvdisasm else None
    stamp = (tool.st_size, tool.st_mtime_ns) if tool else None
    digest.update(msgspec.json.encode([build.arch, build.info.kernels, plan, gpu, stamp]))
    digest.update(msgspec.json.encode([problem.key, problem.at(plan.size), problem.advice]))
    digest.update(msgspec.json.encode([FITTED, course_cards()]))
    digest.update(base.own_code().encode())
    for path in (build.ptx, build.cubin):
        content = path.read_bytes()
        digest.update(f"\0{path.name} {len(content)}\0".encode() + content)
    return digest.hexdigest()[:24]


def recall(key: str) -> base.Explanation | None:
    """The explanation that ``keep`` stored; None where there is none."""
    found = cache.find(_folder(key), ())
    try:
        return None if found is None else base.decode(found, base.Explanation)
    except msgspec.DecodeError:
        return None


def keep(key: str, explanation: base.Explanation) -> None:
    cache.keep(_folder(key), msgspec.json.encode(explanation), {})


def _folder(key: str) -> Path:
    """Among the builds, so that both together stay within the cache's limit."""
    return base.cache_folder() / "builds" / f"explained-{key}"
