"""Explains the speed of a program: brings the model what it needs, and joins it with a grade.

The model (grader/model) is pure. Here the simulator counts a few blocks of the largest timed size,
nvdisasm reads the machine code, and explanations are kept beside the builds.
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path

import msgspec

import ptxsim
from grader import base, model
from grader.judge import (
    Code,
    Graded,
    GradingContext,
    MachineCode,
    Program,
    Ruling,
    Watcher,
    build_program,
    grade,
    keep,
    recall,
)
from grader.labs import Submission
from grader.model import Explanation
from grader.results import CaseResult, find_ladder, shipped_ladders
from grader.run import CpuDevice, GpuDevice, Progress, engine_library, quietly
from grader.study.calibrating import course_cards
from grader.study.model_points import Expectations, expectations, with_points
from ptxsim.findings import LaunchSample, Severity
from ptxsim.plan import Launch, Plan, Size
from ptxsim.text import NOTHING, Message, phrase

_OLDEST = 70  # before Volta, machine code had another form


def explain_program(program: Program, card: base.gpus.Gpu | None) -> Explanation:
    """Explain the speed at the last size prepared. card: None for a few known ones."""
    with _simulator(program.context) as simulator:
        return _explain(program, program.plans[-1], program.disassemble, simulator, card)


def explain_sizes(
    submission: Submission, sizes: Sequence[Size], context: GradingContext, arch: str
) -> Iterator[Explanation | base.Rejected]:
    """Explain the speed at each size on the context's GPUs, all by one build, one recording and one
    simulator. An endless loop in host code ends the answers early. Raises Rejected."""
    with _simulator(context) as simulator:
        program = build_program(submission, context, arch, simulator, quietly)
        code = cache(program.disassemble)
        for plan in program.record(sizes):
            if isinstance(plan, base.Rejected):
                yield plan
            else:
                yield _explain(program, plan, code, simulator, context.card)


def _simulator(context: GradingContext) -> CpuDevice:
    """Make a simulator that knows the problem: counts may depend on what the inputs hold."""
    return CpuDevice(context.sandbox, context.lab.limits, context.lab.problem_ref)


def _explain(
    program: Program, plan: Plan, code: Code, simulator: CpuDevice, card: base.gpus.Gpu | None
) -> Explanation:
    build = program.built
    functions: MachineCode = ()
    samples: tuple[LaunchSample, ...] = ()
    missing: Message | None = None
    with ThreadPoolExecutor(max_workers=1) as pool:
        sampled = pool.submit(simulator.sample, build, program.root, plan, quietly)
        try:
            if base.gpus.capability_of(build.arch) < _OLDEST:
                raise base.ToolchainError.saying(
                    "the model of machine code begins with sm_{oldest}", oldest=_OLDEST
                )
            functions = code()
            if not functions:
                raise base.ToolchainError.saying(
                    "there is no nvdisasm; grade doctor says how to get it"
                )
            samples = tuple(sampled.result())
        except base.GraderError as error:
            missing = error.message
    if not samples and missing is None:
        missing = (
            phrase("it launches too many kinds of kernels")
            if any(isinstance(each, Launch) for each in plan.operations)
            else phrase("it launches no kernel")
        )
    return model.explain_speed(
        build.arch,
        {each.name: each for each in build.info.kernels},
        functions,
        samples,
        plan.size,
        program.context.lab.problem,
        ptxsim.load_engine(engine_library().compiled()),
        missing=missing,
        copies=model.host_copies(plan),
        gpu=card,
        cards=course_cards(),
        rungs=known_rungs(program.context, plan.size.dims, card),
    )


_PAYS = 0.98  # of the speed before: a smaller loss may be the measurement's


def known_rungs(
    context: GradingContext, size: base.Dims, card: base.gpus.Gpu | None
) -> Iterator[model.KnownRung]:
    """Yield the rungs of the problem's ladder, and what each gained when it was measured: on this
    card and at this size, or else on another card, or at the largest size."""
    name = context.lab.problem.interface.main.partition(".")[0]
    ladders = context.ladders or shipped_ladders()
    timed = [each for each in ladders if each.lab.id == name and each.gpu and each.sizes]
    timed.sort(key=lambda each: not (card and each.gpu and card.matches in each.gpu.name))
    rates: dict[str, float] = {}
    for ladder in timed[:1]:
        at = size if size in ladder.sizes else ladder.sizes[-1]
        rates = {each.rung.name: speed.rate for each in ladder.steps if (speed := each.at(at))}
    fastest = 0.0
    for rung in find_ladder(name):
        rate, place = rates.get(rung.name, 0.0), f"{name}/{rung.name}"
        gain = rate / fastest if rate and fastest else None
        fastest = max(fastest, rate)
        pays = not rung.trap and (gain is None or gain >= _PAYS)
        yield model.KnownRung(name=place, pays=pays, lesson=rung.lesson, gain=gain)


# --- a grade that is explained -------------------------------------------------------------------


def grade_and_explain(
    work: Path | Submission,
    context: GradingContext,
    progress: Progress,
    *,
    student: str | None = None,
    submitted: str | None = None,
    gpu: GpuDevice | None = None,
) -> Graded:
    """Grade as ``judge.grade`` does, which says what is what, and explain the speed of what is
    right."""
    with Explaining(context, progress) as explaining:
        graded = grade(
            work,
            context,
            progress,
            student=student,
            submitted=submitted,
            gpu=gpu,
            watcher=explaining,
        )
        return explaining.decorate(graded)


class Explaining(Watcher):
    """Why a kernel is as fast as it is, at the largest timed size; nothing if that has no plan.

    It looks on while the submission is graded. The machine code is read beside
    whatever else happens, and on a GPU the blocks are counted beside the measurement. Explanations
    are kept in the cache: they do not depend on the inputs.
    """

    def __init__(self, context: GradingContext, progress: Progress) -> None:
        self._context, self._progress = context, progress
        self._pool = ThreadPoolExecutor(max_workers=2)
        self._plans: tuple[Plan, ...] = ()
        self._work: Callable[[], Explanation] | None = None  # None: nothing is left to do
        self._found: Explanation | None = None
        self._explain: Callable[[Plan], Explanation] | None = None
        self._program: tuple[Program, CpuDevice] | None = None
        self._expected: Expectations | None = None  # of a lab that the model gives points in

    def __enter__(self) -> Explaining:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=False)  # nobody waits for an explanation that is not wanted

    def planned(
        self,
        program: Program,
        plans: Sequence[Plan | base.Rejected],
        simulator: CpuDevice,
        *,
        idle: bool = False,
        card: base.gpus.Gpu | None = None,
        code: Code | None = None,
    ) -> None:
        """Begin to read the machine code; where the simulator is idle, also to count, before anyone
        knows whether the submission is right."""
        self._plans = tuple(plan for plan in plans if isinstance(plan, Plan))
        amount = self._context.lab.problem.amount
        timed = (case.size for case in self._context.lab.performance)
        size = max(timed, key=amount, default=None)
        plan = next((plan for plan in self._plans if plan.size == size), None)
        if plan is None:
            return
        scoring = self._context.lab.scoring
        own = base.gpus.named(scoring.gpu) if scoring.gpu else self._context.card
        card = card or own
        self._found = recall(_key(program, plan, card), Explanation)
        if code is None:
            read = self._pool.submit(program.disassemble).result if self._found is None else None
            code = read or cache(program.disassemble)
        self._program = program, simulator
        self._explain = partial(_kept_or_made, program, code, simulator, card)
        if self._found is None:
            self._work = partial(self._explain, plan)
            if idle:
                self._work = self._pool.submit(self._work).result

    def ruled(self, ruling: Ruling) -> None:
        """Finish while the grading's devices are open, if there is something to explain."""
        if ruling.explain and self._work is not None:
            self._progress(phrase("explaining"), NOTHING)
            self._found, self._work = self._work(), None
        if (
            self._context.lab.scoring.measure == "model"
            and ruling.verdict is base.Verdict.AC
            and self._program
            and self._explain
        ):
            self._progress(phrase("estimating"), NOTHING)
            program, simulator = self._program
            asked = program, self._plans, simulator, self._explain, ruling.lines
            self._expected = expectations(*asked)

    def decorate(self, graded: Graded) -> Graded:
        """Add the explanation to the result, as far as measurements do not refute it."""
        result, found = graded.result, self._found
        if self._context.lab.scoring.measure == "model":
            result = with_points(result, self._context.lab, self._expected)
            graded = msgspec.structs.replace(graded, result=result)
        if not graded.explain or found is None:
            return graded
        mistakes: tuple[base.Finding, ...] = ()
        if result.environment.device == "gpu":
            info = result.environment.gpu
            found, mistakes = refute(found, result.cases, info, result.problem)
            plan = next((plan for plan in self._plans if plan.size.dims == found.size), None)
            timing = next((each.timing for each in result.cases if each.size == found.size), None)
            if plan and timing:
                times = timing.device_ms, timing.host_ms, timing.ratio
                found = model.with_host_calls(found, plan, *times)
        withheld = self._context.lab.withheld()
        # What most blocks do for nothing is no reason to change what the others do.
        idle = any(each.kind is base.Kind.IDLE_BLOCKS for each in result.findings)
        advice = () if idle or "advice" in withheld else found.advice
        if "rungs" in withheld:
            advice = tuple(msgspec.structs.replace(each, rung=None) for each in advice)
        found = msgspec.structs.replace(found, advice=advice, withheld=withheld)
        findings = (*result.findings, *mistakes)
        result = msgspec.structs.replace(result, explanation=found, findings=findings)
        return msgspec.structs.replace(graded, result=result)


def refute(
    why: Explanation,
    cases: Sequence[CaseResult],
    info: base.GpuInfo | None,
    problem: base.ProblemInfo,
) -> tuple[Explanation, tuple[base.Finding, ...]]:
    """Drop the counts of ``why``, and note our error, if a measured speed exceeds their bound."""
    card = base.gpus.of(info) if info else None
    timed = (case.timing for case in cases if case.size == why.size)
    speeds = [timing.scored_speed for timing in timed if timing]
    for found in why.bounds:
        beyond = [speed for speed in speeds if found.most and not (speed <= found.most.speed)]
        if not found.most or not card or found.gpu != card.name or not beyond:
            continue
        words = phrase(
            "{speed:.4g} {unit} were measured at {size}, and the model's bound says at most "
            "{most:.4g}: the model is wrong here, not the submission",
            speed=max(speeds),
            unit=problem.unit,
            size=base.size_text(why.size),
            most=found.most.speed,
        )
        kept = msgspec.structs.replace(why, counts=(), tile=None, bounds=(), advice=())
        note = base.Finding(kind=base.Kind.BOUND_EXCEEDED, severity=Severity.NOTE, message=words)
        return msgspec.structs.replace(kept, missing=words), (note,)
    return why, ()


def _kept_or_made(
    program: Program, code: Code, simulator: CpuDevice, card: base.gpus.Gpu | None, plan: Plan
) -> Explanation:
    """Return the explanation, which says in ``missing`` why it is none. Raises OutOfTime."""
    key = _key(program, plan, card)
    if kept := recall(key, Explanation):
        return kept
    try:
        found = _explain(program, plan, code, simulator, card)
        if found.missing is None:
            keep(key, found)
        return found
    except base.OutOfTime:
        raise
    except base.GraderError as failure:  # the verdict stands, whatever cannot be explained
        missing = failure.message
    except OSError as failure:
        missing = base.MachineError.of(failure).message
    except Exception as fault:  # of ours
        traceback.print_exc()
        missing = phrase("a fault of the grader: {fault}", fault=f"{type(fault).__name__}: {fault}")
    work = program.context.lab.problem.at(plan.size)
    return model.unexplained(program.built.arch, work, missing)


def _key(program: Program, plan: Plan, card: base.gpus.Gpu | None) -> str:
    """The name under which an explanation is kept.

    card: graded on; None for the few that are shown where there is none.
    """
    build, context = program.built, program.context
    problem, nvdisasm = context.lab.problem, context.toolchain.nvdisasm
    digest = hashlib.sha256()
    tool = nvdisasm.stat() if nvdisasm else None
    stamp = (tool.st_size, tool.st_mtime_ns) if tool else None
    digest.update(msgspec.json.encode([build.arch, build.info.kernels, plan, card, stamp]))
    digest.update(msgspec.json.encode([problem.key, problem.at(plan.size), problem.advice]))
    rungs = tuple(known_rungs(context, plan.size.dims, card))
    digest.update(msgspec.json.encode([model.FITTED, course_cards(), rungs]))
    digest.update(base.own_code().encode())
    for path in (build.ptx, build.cubin):
        content = path.read_bytes()
        digest.update(f"\0{path.name} {len(content)}\0".encode() + content)
    return f"explained-{digest.hexdigest()[:24]}"
