"""The walk of a group of sizes: recorded, run, ruled on.

The public sizes of a lab are one group, its hidden sizes another: each is recorded and run in
processes of its own. The GPU and the simulator differ in how they run what was recorded, and in
nothing else.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import msgspec

from grader import base
from grader.judge.larger_sizes import LargerSizes
from grader.judge.launches import with_refused_calls
from grader.judge.program import Program
from grader.judge.rulings import Ruling, from_failure, reduced, rule
from grader.judge.scoring import Yardsticks
from grader.labs import Case
from grader.results import KernelLaunch, SizeGroup
from grader.run import CaseOutcome, CpuDevice, PlannedCase, Progress, quietly, refused
from ptxsim.plan import Launch, Plan, Record, Size
from ptxsim.text import counted, phrase


class Group(Record):
    """Sizes whose launches are recorded."""

    program: Program
    cases: tuple[Case, ...]  # in increasing order: one that takes too long costs only larger ones
    planned: tuple[PlannedCase, ...]  # those that can run
    refusals: tuple[CaseOutcome, ...]  # of those that the recorder or the lab's rules rejected
    larger: LargerSizes  # that only a GPU runs
    notes: tuple[base.Finding, ...]  # on library kernels


Ran = tuple[Sequence[CaseOutcome], Sequence[base.Finding]]  # of what is planned; notes on its code
Run = Callable[[Group, Progress], Ran]  # the stage in which the devices differ


def record_group(
    program: Program,
    cases: Iterable[Case],
    progress: Progress,
    *,
    larger: Iterable[Case] = (),
    located: bool = True,
) -> Group:
    """Record the launches of one group in processes of its own.

    larger: cases that do not run here. located: note source lines. Raises Rejected where the lab
    forbids a library that the group launches.
    """
    ordered = tuple(sorted(cases, key=lambda case: program.context.lab.problem.amount(case.size)))
    sizes = [case.size for case in (*ordered, *larger)]
    words = counted(
        "recording the launches for {count} size",
        "recording the launches for {count} sizes",
        len(sizes),
    )
    progress(phrase("recording the launches"), words)
    plans = program.record(sizes, located=located)
    # There are fewer after an endless loop in host code.
    own, count = list(zip(ordered, plans, strict=False)), len(ordered)
    return Group(
        program=program,
        cases=ordered,
        planned=tuple(PlannedCase(id=c.id, plan=p) for c, p in own if isinstance(p, Plan)),
        refusals=tuple(refused(c.id, c.size, p) for c, p in own if isinstance(p, base.Rejected)),
        larger=LargerSizes(
            program=program,
            plans=tuple(zip(sizes[count:], plans[count:], strict=False)),
            located=located,
        ),
        notes=program.note_libraries(plans),
    )


def walk(group: Group, run: Run, simulator: CpuDevice, progress: Progress) -> Ruling:
    """Run a recorded group and rule on it; if it is right, look at its larger sizes."""
    lab = group.program.context.lab
    outcomes, notes = run(group, progress)
    plans = [case.plan for case in group.planned]
    outcomes = with_refused_calls((*group.refusals, *outcomes), plans, lab.architectures)
    notes = (*notes, *group.notes, *group.larger.warnings(outcomes))
    ruling = rule(group.cases, outcomes, lab, notes)
    if ruling.verdict is base.Verdict.AC and (fault := group.larger.fault(simulator, progress)):
        verdict, findings = fault.verdict, (*fault.findings, *ruling.findings)
        ruling = msgspec.structs.replace(
            ruling, verdict=verdict, error=fault.message, findings=findings
        )
    kernels = {  # copies and memsets are none
        each.size: sum(isinstance(operation, Launch) for operation in each.operations)
        for each in plans
    }
    cases = tuple(
        msgspec.structs.replace(case, kernels=kernels.get(Size(dims=case.size)))
        for case in ruling.cases
    )
    return msgspec.structs.replace(
        ruling, build=group.program.built.info, cases=cases, launches=_launches(group)
    )


def _launches(group: Group) -> tuple[KernelLaunch, ...]:
    """The launches of the largest size that can run; equal ones are counted together."""
    plans, problem = (case.plan for case in group.planned), group.program.context.lab.problem
    largest = max(plans, key=lambda plan: problem.amount(plan.size), default=None)
    shapes = Counter(
        (o.kernel, o.grid, o.block, o.shared_bytes)
        for o in (largest.operations if largest else ())
        if isinstance(o, Launch)
    )
    return tuple(
        KernelLaunch(kernel=kernel, grid=grid, block=block, shared_bytes=shared, times=times)
        for (kernel, grid, block, shared), times in shapes.items()
    )


def grade_hidden(
    program: Program,
    cases: Sequence[Case],
    device: AbstractContextManager[Run],
    simulator: CpuDevice,
    *,
    larger: Iterable[Case] = (),
    yardsticks: Yardsticks | None = None,
    wanted: bool = True,
) -> SizeGroup:
    """Walk the hidden sizes the same way, and reduce what comes out to a ``SizeGroup``.

    wanted: whether they run at all.
    """
    lab = program.context.lab
    if not (cases and wanted):
        return reduced(None, lab, len(cases))
    with sealed():
        try:
            with device as run:
                group = record_group(program, cases, quietly, larger=larger, located=False)
                found = walk(group, run, simulator, quietly)
        except base.Rejected as refusal:
            found = from_failure(refusal)
        return reduced(found, lab, len(cases), yardsticks)


@contextmanager
def sealed() -> Iterator[None]:
    """Let no failure at hidden sizes, ours included, say anything that depends on them."""
    try:
        yield
    except base.OutOfTime:
        raise
    except Exception:
        raise base.MachineError(HIDDEN_FAILURE) from None


HIDDEN_FAILURE = phrase(
    "the grader failed at a hidden size; with the secret, grade --reveal says where"
)
