"""The walk of a group of sizes: recorded, run, ruled on.

The public sizes of a lab are one group, its hidden sizes another: each is recorded and run in
processes of its own. The GPU and the simulator differ in how they run what was recorded, and in
nothing else.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import zip_longest

import msgspec

from grader import base
from grader.judge.larger_sizes import LargerSizes
from grader.judge.launches import with_refused_calls
from grader.judge.program import Program
from grader.judge.rulings import Ruling, from_failure, reduced, rule
from grader.judge.scoring import Yardsticks
from grader.labs import Case
from grader.problems import Problem
from grader.run import CaseOutcome, CpuDevice, PlannedCase, Progress, quietly
from ptxsim.plan import Launch, Plan, Record
from ptxsim.text import counted, phrase


class Group(Record):
    """Sizes whose launches are recorded."""

    program: Program
    # In increasing order: one that takes too long costs only larger ones. Some are refused already,
    # by the recorder or by the lab's rules.
    cases: tuple[CaseOutcome, ...]
    planned: tuple[PlannedCase, ...]  # those that can run
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
    # There are fewer plans after an endless loop in host code.
    count, problem = len(ordered), program.context.lab.problem
    begun = tuple(_begin(c, problem, plan) for c, plan in zip_longest(ordered, plans[:count]))
    own = zip(begun, plans, strict=False)
    return Group(
        program=program,
        cases=begun,
        planned=tuple(PlannedCase(case=case, plan=p) for case, p in own if isinstance(p, Plan)),
        larger=LargerSizes(
            program=program,
            plans=tuple(zip(sizes[count:], plans[count:], strict=False)),
            located=located,
        ),
        notes=program.note_libraries(plans),
    )


def _begin(case: Case, problem: Problem, plan: Plan | base.Rejected | None) -> CaseOutcome:
    begun = CaseOutcome(id=case.id, size=case.size.dims, amount=problem.amount(case.size))
    if isinstance(plan, base.Rejected):
        return begun.refused(plan)
    if plan is None:
        return begun
    kernels = sum(isinstance(each, Launch) for each in plan.operations)  # no copies, no memsets
    return msgspec.structs.replace(begun, kernels=kernels)


def walk(group: Group, run: Run, simulator: CpuDevice, progress: Progress) -> Ruling:
    """Run a recorded group and rule on it; if it is right, look at its larger sizes."""
    lab = group.program.context.lab
    ran, notes = run(group, progress)
    refused = (case for case in group.cases if case.verdict)
    outcomes = with_refused_calls((*refused, *ran), group.planned, lab.architectures)
    notes = (*notes, *group.notes, *group.larger.warnings(outcomes))
    ruling = rule(group.cases, outcomes, lab, notes)
    if ruling.verdict is base.Verdict.AC and (fault := group.larger.fault(simulator, progress)):
        verdict, findings = fault.verdict, (*fault.findings, *ruling.findings)
        ruling = msgspec.structs.replace(
            ruling, verdict=verdict, error=fault.message, findings=findings
        )
    return msgspec.structs.replace(
        ruling, build=group.program.built.info, launches=_launches(group)
    )


def _launches(group: Group) -> tuple[base.LaunchKind, ...]:
    """The launches of the largest size that can run; equal ones are counted together."""
    largest = max(group.planned, key=lambda planned: planned.case.amount, default=None)
    shapes = Counter(
        (o.kernel, o.grid, o.block, o.shared_bytes)
        for o in (largest.plan.operations if largest else ())
        if isinstance(o, Launch)
    )
    return tuple(
        base.LaunchKind(kernel=kernel, grid=grid, block=block, shared_bytes=shared, times=times)
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
) -> base.SizeGroup:
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
