"""The way of a group of sizes, and a grade in the simulator.

The public sizes of a lab are one group, its hidden sizes another: recorded, run, and looked at
beyond what can run here. The GPU and the simulator differ in how they run what was recorded, and in
nothing else.
"""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from grader.base import (
    BuildInfo,
    CaseResult,
    Explanation,
    Finding,
    GpuInfo,
    GraderError,
    KernelLaunch,
    MachineError,
    OutOfTime,
    Rejected,
    Score,
    SizeGroup,
    SlurmInfo,
    Submission,
    Verdict,
    one_line,
)
from grader.judge import rulings
from grader.judge.launches import kernels_launched, refused_calls, with_refused_calls
from grader.judge.program import Bench, Explaining, Program, build_program
from grader.judge.verdicts import DECIDING, line_counts
from grader.labs import Case, Hidden
from grader.run import CaseOutcome, CpuDevice, PlannedCase, Progress, quietly, refused
from ptxsim.findings.finding import LineCount, Severity
from ptxsim.message import NOTHING, Message, counted, phrase
from ptxsim.records import Launch, Plan, Record, Size

# --- a group of sizes --------------------------------------------------------------------------


class Group(Record):
    """Sizes whose launches are recorded."""

    cases: tuple[Case, ...]  # in increasing order: one that takes too long costs only larger ones
    plans: tuple[Plan | Rejected, ...]  # of the cases; fewer after an endless loop in host code
    larger: tuple[Plan | Rejected, ...]  # of sizes that only a GPU runs
    notes: tuple[Finding, ...]  # on library kernels

    @property
    def planned(self) -> tuple[PlannedCase, ...]:
        """The cases that can run."""
        return tuple(
            PlannedCase(id=case.id, plan=plan)
            for case, plan in zip(self.cases, self.plans, strict=False)
            if isinstance(plan, Plan)
        )

    @property
    def refusals(self) -> tuple[CaseOutcome, ...]:
        """The outcomes of the cases that the recorder or the lab's rules rejected."""
        return tuple(
            refused(case.id, case.size, plan)
            for case, plan in zip(self.cases, self.plans, strict=False)
            if isinstance(plan, Rejected)
        )


class Beyond(Record):
    """A fault at a size that only a GPU runs, or none."""

    verdict: Verdict = Verdict.AC
    words: Message = NOTHING
    findings: tuple[Finding, ...] = ()


def record_group(
    program: Program,
    cases: Iterable[Case],
    progress: Progress,
    *,
    larger: Sequence[Size] = (),
    located: bool = True,
) -> Group:
    """Record the launches of one group in processes of its own.

    larger: sizes that do not run here. located: note source lines. Raises Rejected where the lab
    forbids a library that the group launches.
    """
    ordered = tuple(sorted(cases, key=lambda case: program.bench.lab.problem.amount(case.size)))
    sizes = [*(case.size for case in ordered), *larger]
    progress(
        phrase("recording the launches"),
        counted(
            "recording the launches for {count} size",
            "recording the launches for {count} sizes",
            len(sizes),
        ),
    )
    plans = program.record(sizes, located=located)
    return Group(
        cases=ordered,
        plans=plans[: len(ordered)],
        larger=plans[len(ordered) :],
        notes=program.note_libraries(plans),
    )


def simulate_group(
    program: Program, group: Group, device: CpuDevice, progress: Progress
) -> tuple[CaseOutcome, ...]:
    """Run the group in the simulator."""
    lab, outcomes = program.bench.lab, group.refusals
    if group.planned:
        outcomes += device.run(program.build, program.root, group.planned, lab, progress)
    return tuple(with_refused_calls(outcomes, group.plans, lab.architectures))


def look_beyond(
    program: Program,
    group: Group,
    device: CpuDevice,
    progress: Progress,
    *,
    larger: Sequence[Size],
    located: bool = True,
) -> Beyond:
    """Find the first of the ``larger`` sizes that cannot be right on a GPU.

    None of the lab's architectures can make its launches, or the first blocks of a launch, which
    the simulator runs, leave memory that the submission allocates.
    """
    return _find_refused(program, group, larger, located=located) or (
        _find_overrun(program, group, device, progress) or Beyond()
    )


def _find_refused(
    program: Program, group: Group, sizes: Sequence[Size], *, located: bool
) -> Beyond | None:
    # The plans are for the first architecture, the build's own.
    _, *others = program.bench.lab.architectures
    for size, plan in zip(sizes, group.larger, strict=False):
        if not isinstance(plan, Rejected):
            continue
        again = (program.record([size], arch, located=located) for arch in others)
        if not any(isinstance(one, Plan) for plans in again for one in plans):
            findings = tuple(_error_at(size, each) for each in plan.findings)
            words = _at(size, plan.message)
            return Beyond(verdict=plan.verdict, words=words, findings=findings)
    return None


def _find_overrun(
    program: Program, group: Group, device: CpuDevice, progress: Progress
) -> Beyond | None:
    for plan in group.larger:
        if isinstance(plan, Rejected) or all(
            a.symbol is not None for a in plan.allocations[plan.given :]
        ):
            continue
        try:
            found = device.probe(program.build, program.root, plan, progress)
        except OutOfTime:
            raise
        except GraderError as failure:  # the verdict stands, whatever cannot be looked at
            words = phrase("not looked at {size}: {why}", size=str(plan.size), why=failure.message)
            progress(words, NOTHING)
            continue
        if found:
            first = _error_at(plan.size, found[0])
            words = first.message
            if first.file:
                place = f"{first.file}:{first.line}"
                words = phrase("{place}: {what}", place=place, what=words)
            findings = (first, *(_error_at(plan.size, each) for each in found[1:]))
            return Beyond(verdict=Verdict.RE, words=words, findings=findings)
    return None


def warn_of_larger(
    group: Group, outcomes: Sequence[CaseOutcome], architectures: Sequence[str]
) -> tuple[Finding, ...]:
    """Return a warning for each line whose call CUDA refuses at larger sizes alone."""
    warned = {each.subject for outcome in outcomes for each in outcome.findings}
    found = []
    for plan in group.larger:
        if isinstance(plan, Rejected):
            continue
        for finding in refused_calls(plan, architectures):
            if finding.subject not in warned:
                warned.add(finding.subject)
                words = _at(plan.size, finding.message)
                found.append(msgspec.structs.replace(finding, message=words))
    return tuple(found)


def _error_at(size: Size, finding: Finding) -> Finding:
    words = _at(size, finding.message)
    return msgspec.structs.replace(finding, message=words, severity=Severity.ERROR)


def _at(size: Size, what: Message) -> Message:
    return phrase("at {size}, which a GPU times: {what}", size=str(size), what=what)


# --- parts of every grade ----------------------------------------------------------------------


def slurm_job() -> SlurmInfo | None:
    """The Slurm job that this process runs in, or None. Raises MachineError for invalid values."""
    job = _variable("SLURM_JOB_ID")
    if job is None:
        return None
    restarts = _variable("SLURM_RESTART_COUNT") or "0"
    if not (restarts.isascii() and restarts.isdecimal()):
        raise MachineError(
            phrase("SLURM_RESTART_COUNT={restarts}: not a number; unset it", restarts=restarts)
        )
    return SlurmInfo(
        job=job,
        node=_variable("SLURMD_NODENAME") or one_line(platform.node()),
        partition=_variable("SLURM_JOB_PARTITION") or "",
        task=_variable("SLURM_ARRAY_TASK_ID"),
        restarts=int(restarts[:9]),
    )


def _variable(name: str) -> str | None:
    """A variable of the environment as UTF-8, which is all that a document can hold."""
    value = os.environ.get(name)
    return None if value is None else one_line(value)


# --- the grade ---------------------------------------------------------------------------------


class StageResults(Record):
    """The parts of a result that the stages make, as far as they ran."""

    verdict: Verdict
    error: Message | None = None
    build: BuildInfo | None = None
    cases: tuple[CaseResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    lines: tuple[LineCount, ...] = ()
    printed: str = ""  # by device printf in the smallest case that printed anything
    launches: tuple[KernelLaunch, ...] = ()
    gpu: GpuInfo | None = None
    score: Score | None = None
    explanation: Explanation | None = None
    groups: tuple[SizeGroup, ...] = ()


def results_of(ruling: rulings.Ruling, program: Program, group: Group) -> StageResults:
    """Collect what every grade says. Its launches are those of the largest size; equal ones are
    counted together."""
    problem = program.bench.lab.problem
    counts = {plan.size: kernels_launched(plan) for plan in group.plans if isinstance(plan, Plan)}
    plans = (case.plan for case in group.planned)
    largest = max(plans, key=lambda plan: problem.amount(plan.size), default=None)
    shapes = Counter(
        (operation.kernel, operation.grid, operation.block, operation.shared_bytes)
        for operation in (largest.operations if largest else ())
        if isinstance(operation, Launch)
    )
    return StageResults(
        verdict=ruling.verdict,
        build=program.info,
        cases=tuple(
            msgspec.structs.replace(case, kernels=counts.get(Size(dims=case.size)))
            for case in ruling.cases
        ),
        findings=ruling.findings,
        launches=tuple(
            KernelLaunch(kernel=kernel, grid=grid, block=block, shared_bytes=shared, times=times)
            for (kernel, grid, block, shared), times in shapes.items()
        ),
        score=ruling.score,
        groups=ruling.groups,
    )


# Whatever ends a grading early. An OSError is a full disk or a deleted folder.
ENDINGS = (Rejected, OutOfTime, MachineError, OSError)


def end_early(failure: Rejected | OutOfTime | MachineError | OSError) -> StageResults:
    """Return what is left of a grading that ``failure`` ended."""
    if isinstance(failure, OSError):
        failure = MachineError.of(failure)
    verdict, error = rulings.of_failure(failure), failure.message
    if isinstance(failure, Rejected):
        return StageResults(
            verdict=verdict, error=error, build=failure.build, findings=failure.findings
        )
    return StageResults(verdict=verdict, error=error)


def grade_in_simulator(
    submission: Submission, bench: Bench, device: CpuDevice, progress: Progress
) -> StageResults:
    """Grade at the lab's cpu sizes. Raises one of ``ENDINGS``."""
    lab = bench.lab
    program = build_program(submission, bench, lab.architectures[0], device, progress)
    # On a GPU the timed sizes run for themselves; here it is seen whether they could.
    larger = [each.size for each in lab.performance] if bench.gpu_arch is None else []
    group = record_group(program, lab.cpu, progress, larger=larger)
    beyond = Beyond()
    with Explaining(program, group.larger) as explaining:
        outcomes = simulate_group(program, group, device, progress)
        notes = (*group.notes, *warn_of_larger(group, outcomes, lab.architectures))
        ruling = rulings.in_simulator(group.cases, outcomes, lab, notes=notes)
        if ruling.verdict is Verdict.AC:
            beyond = look_beyond(program, group, device, progress, larger=larger)
            ruling = rulings.at_larger_sizes(ruling, beyond.verdict, beyond.findings)
        explanation = explaining.result(device, progress) if ruling.explain else None
        # Last of all, so that nothing said of the others can depend on them.
        if lab.hidden is not None:
            hidden = _grade_hidden(program, lab.hidden, device, ruling.verdict)
            ruling = rulings.with_hidden(ruling, lab, hidden)
    return msgspec.structs.replace(
        results_of(ruling, program, group),
        error=beyond.words or None,
        lines=line_counts(outcomes, lab.problem),
        printed=next((outcome.printed for outcome in outcomes if outcome.printed), ""),
        explanation=explanation if ruling.explain else None,
    )


def _grade_hidden(
    program: Program, hidden: Hidden, device: CpuDevice, public: Verdict
) -> SizeGroup:
    """Take the hidden sizes the same way, and reduce what comes out to a ``SizeGroup``."""
    lab = program.bench.lab
    if not hidden.cpu or public in DECIDING:
        return rulings.not_run(hidden, len(hidden.cpu))
    timed = program.bench.gpu_arch is None
    larger = [each.size for each in hidden.performance] if timed else []
    try:
        with sealed():
            group = record_group(program, hidden.cpu, quietly, larger=larger, located=False)
            outcomes = simulate_group(program, group, device, quietly)
            found = rulings.hidden_group(group.cases, outcomes, lab)
            if found.verdict is Verdict.AC:
                beyond = look_beyond(program, group, device, quietly, larger=larger, located=False)
                if beyond.verdict is not Verdict.AC:
                    return rulings.spoilt(found, beyond.verdict, beyond.findings)
            return found
    except Rejected as refusal:
        return rulings.refused(hidden, len(hidden.cpu), refusal)


@contextmanager
def sealed() -> Iterator[None]:
    """Let no failure at hidden sizes, ours included, say anything that depends on them."""
    try:
        yield
    except (Rejected, OutOfTime):
        raise
    except Exception:
        raise MachineError(HIDDEN_FAILURE) from None


HIDDEN_FAILURE = phrase(
    "the grader failed at a hidden size; with the secret, grade --reveal says where"
)
