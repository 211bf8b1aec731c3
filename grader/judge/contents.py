"""A look into wrong elements that nothing else explains: what they hold, by the simulator.

It changes no verdict: it adds to the message of the smallest wrong size that is large enough to
show what repeats.
"""

import math

import msgspec

from grader import base
from grader.judge.rulings import Ruling
from grader.judge.walk import Group
from grader.problems import shows_enough
from grader.run import CaseOutcome, CpuDevice, Progress
from ptxsim.findings import Severity
from ptxsim.text import NOTHING, phrase

_LOOKS = 2  # sizes that are tried


def with_contents(group: Group, ruling: Ruling, simulator: CpuDevice, progress: Progress) -> Ruling:
    """Return the ruling on a group that the simulator ran; if it is WA and no finding says why,
    with what elements of one wrong size hold."""
    explained = any(each.severity is Severity.ERROR for each in ruling.findings)
    if ruling.verdict is not base.Verdict.WA or explained:
        return ruling
    plans = {planned.id: planned.plan for planned in group.planned}
    wrong = [each for each in ruling.cases if each.id in plans and _unexplained(each)]
    problem = group.program.context.lab.problem
    wrong.sort(key=lambda case: not shows_enough(problem, plans[case.id].size))
    for case in wrong[:_LOOKS]:
        progress(phrase("simulating"), phrase("simulating coded inputs"))
        program = group.program
        try:
            seen = simulator.look_into(program.built, program.root, plans[case.id], progress)
        except base.OutOfTime:
            raise
        except base.GraderError as failure:  # the verdict stands
            words = phrase("not looked into {size}: {why}", size=base.size_text(case.size))
            progress(words.given(why=failure.message), NOTHING)
            return ruling
        if seen.message and case.error:
            told = msgspec.structs.replace(
                case,
                message=phrase("{amount}: {cause}", amount=case.message, cause=seen.message),
                error=msgspec.structs.replace(case.error, strips=seen.strips),
            )
            cases = tuple(told if each.id == case.id else each for each in ruling.cases)
            findings = (*ruling.findings, *seen.findings)
            return msgspec.structs.replace(ruling, cases=cases, findings=findings)
    return ruling


def _unexplained(case: CaseOutcome) -> bool:
    error = case.error
    if case.verdict is not base.Verdict.WA or error is None or not error.wrong:
        return False
    return case.message == base.wrong_elements(error.wrong, math.prod(error.shape))
