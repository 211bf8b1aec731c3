"""Plans that may run, and those that may not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from grader.backends.protocol import CaseOutcome, PlannedCase, refused
from grader.errors import Rejected
from grader.grading.document import build_info
from grader.grading.preparing import Bench
from grader.judging import libraries
from grader.labs.lab import Case
from grader.model import (
    Build,
    Finding,
    Plan,
)
from ptxsim.frontend.interface import Interface


def told_apart(
    cases: Sequence[Case], plans: Sequence[Plan | Rejected]
) -> tuple[list[CaseOutcome], list[PlannedCase]]:
    """The cases that the recorder or the lab's rules rejected, and the others with their plans."""
    outcomes: list[CaseOutcome] = []
    planned: list[PlannedCase] = []
    # Fewer plans after an endless host loop; more where the timed sizes are planned, too.
    for case, plan in zip(cases, plans, strict=False):
        if isinstance(plan, Plan):
            planned.append(PlannedCase(id=case.id, plan=plan))
        else:
            outcomes.append(refused(case.id, case.size, plan))
    return outcomes, planned


def used_libraries(
    built: Build, declared: Interface, plans: Iterable[Plan | Rejected], bench: Bench
) -> tuple[Finding, ...]:
    """The library kernels that ``plans`` launch. Raises Rejected where the lab forbids them."""
    launched = (plan for plan in plans if isinstance(plan, Plan))
    notes = libraries.library_kernels(launched, declared, bench.lab.problem)
    refusal = libraries.refusal(notes, bench.lab.rules, build_info(built))
    if refusal is not None:
        raise refusal
    return notes
