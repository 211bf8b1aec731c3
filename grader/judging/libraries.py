"""Which of the launched kernels are a library's, by what the problem takes for evidence."""

from __future__ import annotations

from collections.abc import Iterable

from grader.errors import Rejected
from grader.labs.lab import Rules
from grader.model import BuildInfo, Finding, Kind, Launch, Plan, Severity, Verdict, phrase
from grader.problems.problem import Problem
from ptxsim.findings.names import identifiers, kernel_name
from ptxsim.frontend.interface import Interface


def library_kernels(
    plans: Iterable[Plan], declared: Interface, problem: Problem
) -> tuple[Finding, ...]:
    """A note for each kernel of a library that ``plans`` launch."""
    operations = [o for plan in plans for o in (*plan.setup, *plan.operations)]
    launched = {each.kernel for each in operations if isinstance(each, Launch)}
    found = []
    for kernel in sorted(launched):
        origins = declared.origins.get(kernel, ())
        evidence = problem.from_a_library(identifiers(kernel), origins)
        if evidence is not None:
            message = phrase(
                "{kernel} is a library's kernel: {evidence}",
                kernel=kernel_name(kernel),
                evidence=evidence,
            )
            found.append(Finding(kind=Kind.LIBRARY, severity=Severity.NOTE, message=message))
    return tuple(found)


def refusal(notes: tuple[Finding, ...], rules: Rules, build: BuildInfo) -> Rejected | None:
    """What the lab's rules make of ``notes``: RF, or nothing."""
    if not notes or rules.libraries == "allow":
        return None
    words = phrase("{found}; this lab asks for a kernel of your own", found=notes[0].message)
    return Rejected(Verdict.RF, words, notes, build)
