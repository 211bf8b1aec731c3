"""The second, unoptimised build of the device code, run at small sizes before an AC is final, and
after wrong elements that no finding explains (``ptxsim.second_build`` says what it shows).

It can only add findings. Where it is missing, differs from the first build or takes too long, a
note says so. What it shows is kept in the cache, by what was run.
"""

import hashlib
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from grader import base
from grader.build import cache
from grader.judge.rulings import Ruling
from grader.judge.verdicts import hidden_by_nvcc, overall
from grader.judge.walk import Group
from grader.run import CpuDevice, Progress, SecondRun
from ptxsim.findings import Severity
from ptxsim.plan import Plan
from ptxsim.text import Message, phrase

_MOST_INSTRUCTIONS = 120_000  # of warps, that the first build executes at these sizes


def with_second_build(
    group: Group, ruling: Ruling, simulator: CpuDevice, progress: Progress
) -> Ruling:
    """Return the ruling on a group that the simulator ran, with what the second build adds."""
    explained = any(each.severity is Severity.ERROR for each in ruling.findings)
    if explained or ruling.verdict not in (base.Verdict.AC, base.Verdict.WA):
        return ruling
    plans = tuple(_plans(group, ruling))
    if not plans:
        return ruling
    seen = _seen(group, plans, simulator, progress)
    if seen.missing:
        words = phrase("the second build (nvcc -G) was not looked at: {why}", why=seen.missing)
        note = base.Finding(kind=base.Kind.SECOND_BUILD, severity=Severity.NOTE, message=words)
        return msgspec.structs.replace(ruling, findings=(*ruling.findings, note))
    if not seen.findings or seen.size is None:
        return ruling
    findings = tuple(
        msgspec.structs.replace(each, message=_in_second_build(each.message))
        for each in seen.findings
    )
    cases = tuple(
        hidden_by_nvcc(case, findings[0]) if case.size == seen.size.dims else case
        for case in ruling.cases
    )
    return msgspec.structs.replace(
        ruling, verdict=overall(cases), cases=cases, findings=(*findings, *ruling.findings)
    )


def _in_second_build(what: Message) -> Message:
    return phrase("built without optimisation (nvcc -G): {what}", what=what)


def _plans(group: Group, ruling: Ruling) -> Iterator[Plan]:
    """The sizes that take least; of a program that is wrong, those with wrong elements."""
    plans = {planned.id: planned.plan for planned in group.planned}
    sought = [case for case in ruling.cases if case.verdict is ruling.verdict]
    left = _MOST_INSTRUCTIONS
    for place, case in enumerate(sought):
        takes = sum(line.instructions for line in case.lines)
        if not place or takes <= left:
            left -= takes
            yield plans[case.id]


def _seen(
    group: Group, plans: tuple[Plan, ...], simulator: CpuDevice, progress: Progress
) -> SecondRun:
    program, problem = group.program, group.program.context.lab.problem
    sizes = [problem.at(plan.size) for plan in plans]
    digest = hashlib.sha256(program.built.second_ptx.read_bytes())
    digest.update(msgspec.json.encode([base.own_code(), problem.key, sizes, plans]))
    folder = base.cache_folder() / "builds" / f"second-{digest.hexdigest()[:24]}"
    with suppress(msgspec.DecodeError):
        if (card := cache.find(folder, ())) is not None:
            return base.decode(card, SecondRun)
    progress(phrase("simulating"), phrase("simulating the unoptimised build"))
    try:
        seen = simulator.run_second(program.built, program.root, plans, progress)
    except base.OutOfTime:
        raise
    except base.GraderError as failure:  # the verdict stands
        return SecondRun(missing=failure.message)
    with suppress(OSError):
        cache.keep(folder, msgspec.json.encode(seen), {})
    return seen
