"""Public and hidden sizes as groups. A hidden group says how many sizes are right, the verdict, one
kind of mistake and whole points: nothing else of a hidden size leaves this module.

Code under test chooses what goes wrong at which size. A line, a message, a value or a time would
be a channel through which it could tell the size. So would several kinds of mistakes: each would be
a bit, and a program can make them all at once. So one kind is kept, and no count. Points are
rounded, because code can choose how long it takes.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from grader.base import (
    CaseResult,
    Explanation,
    Finding,
    GpuInfo,
    GraderError,
    Kind,
    OutOfTime,
    ProblemInfo,
    Rejected,
    Score,
    SizeGroup,
    Verdict,
    gpus,
    size_text,
    weighted_mean,
)
from grader.judge import scoring
from grader.judge.launches import held_to_the_clock
from grader.judge.verdicts import (
    DECIDING,
    judge_cases,
    merge_findings,
    only_slow,
    overall,
    weightiest,
    worst,
)
from grader.labs import Case, Hidden, Lab, Rules
from grader.run import CaseOutcome
from ptxsim.findings.finding import Severity
from ptxsim.message import phrase
from ptxsim.records import Record


def public_group(hidden: Hidden, results: Sequence[CaseResult], score: Score | None) -> SizeGroup:
    return SizeGroup(
        name="public",
        weight=hidden.public_weight,
        sizes=len(results),
        right=_right(results),
        verdict=overall(results),
        mistakes=(),
        points=score.total if score else None,
    )


def hidden_group(
    cases: Sequence[Case],
    outcomes: Sequence[CaseOutcome],
    lab: Lab,
    by: scoring.Yardsticks | None = None,
) -> SizeGroup:
    """by: for the points of the timed cases; None where nothing is timed."""
    assert lab.hidden is not None
    results = judge_cases(cases, outcomes, lab.problem, lab.rules)
    verdict = overall(results)
    points = None
    if by is not None:
        score = scoring.score(verdict, lab.hidden.performance, results, lab.scoring, by)
        points = float(round(score.total)) if score else None
    return SizeGroup(
        name="hidden",
        weight=lab.hidden.weight,
        sizes=len(cases),
        right=_right(results),
        verdict=verdict,
        mistakes=_mistakes([each for outcome in outcomes for each in outcome.findings]),
        points=points,
    )


def not_run(hidden: Hidden, sizes: int) -> SizeGroup:
    """sizes: 0 where the seed is not at hand."""
    return SizeGroup(
        name="hidden",
        weight=hidden.weight,
        sizes=sizes,
        right=0,
        verdict=None,
        mistakes=(),
        points=None,
    )


def refused(hidden: Hidden, sizes: int, refusal: Rejected) -> SizeGroup:
    """The group of a submission that a stage rejected for its hidden sizes."""
    return spoilt(not_run(hidden, sizes), refusal.verdict, refusal.findings)


def spoilt(group: SizeGroup, verdict: Verdict, findings: Sequence[Finding]) -> SizeGroup:
    """The group after something else than its sizes' runs went wrong."""
    points = None if group.points is None else 0.0
    return msgspec.structs.replace(
        group, verdict=verdict, mistakes=_mistakes(findings), points=points
    )


def _mistakes(findings: Sequence[Finding]) -> tuple[Kind, ...]:
    kind = weightiest(findings)
    return () if kind is None else (kind,)


def combined(score: Score | None, public: SizeGroup, hidden: SizeGroup) -> Score | None:
    """The score of both groups by their weights; the public one if nothing hidden is timed."""
    if score is None or hidden.points is None:
        return score
    total = weighted_mean([(public.weight, score.total), (hidden.weight, hidden.points)])
    return msgspec.structs.replace(score, total=round(total, 2))


def _right(results: Sequence[CaseResult]) -> int:
    return sum(result.verdict is Verdict.AC for result in results)


# --- rulings -----------------------------------------------------------------------------------

_NOTHING_AGAINST = (Verdict.AC, Verdict.IE)  # IE: the simulator could not run it


class Ruling(Record):
    verdict: Verdict
    cases: tuple[CaseResult, ...]
    findings: tuple[Finding, ...]
    score: Score | None
    explain: bool  # whether to say why it is as fast as it is
    groups: tuple[SizeGroup, ...] = ()  # of a lab with hidden sizes


def in_simulator(
    cases: Sequence[Case],
    outcomes: Sequence[CaseOutcome],
    lab: Lab,
    *,
    notes: Sequence[Finding] = (),
) -> Ruling:
    """Rule on the public sizes. notes: on what the plans launch."""
    results = judge_cases(cases, outcomes, lab.problem, lab.rules)
    findings = (*merge_findings(outcomes), *notes)
    verdict = overall(results)
    return Ruling(
        verdict=verdict,
        cases=results,
        findings=_worth_telling(findings, verdict, lab.rules),
        score=None,
        explain=verdict is Verdict.AC or only_slow(results, findings),
    )


def _worth_telling(
    findings: Sequence[Finding], verdict: Verdict, rules: Rules
) -> tuple[Finding, ...]:
    """Without the instructions of tensor cores that nobody forbids."""
    if rules.tensor_cores == "forbid" or verdict is Verdict.RF:
        return tuple(findings)
    return tuple(each for each in findings if each.kind is not Kind.TENSOR_CORE)


def with_hidden(ruling: Ruling, lab: Lab, hidden: SizeGroup) -> Ruling:
    """Add what the hidden sizes say in the simulator."""
    assert lab.hidden is not None
    verdict = ruling.verdict if hidden.verdict is None else worst([ruling.verdict, hidden.verdict])
    return msgspec.structs.replace(
        ruling,
        verdict=verdict,
        explain=ruling.explain and verdict is ruling.verdict,
        groups=(public_group(lab.hidden, ruling.cases, None), hidden),
    )


def at_larger_sizes(ruling: Ruling, verdict: Verdict, findings: Sequence[Finding]) -> Ruling:
    """Add what the plans of those sizes say that only a GPU runs."""
    return msgspec.structs.replace(
        ruling,
        verdict=verdict,
        findings=(*findings, *ruling.findings),
        explain=ruling.explain and verdict is Verdict.AC,
    )


def on_gpu(
    cases: Sequence[Case],
    outcomes: Sequence[CaseOutcome],
    lab: Lab,
    *,
    gpu: GpuInfo | None,
    simulated: Verdict,
    notes: Sequence[Finding],
    by: scoring.Yardsticks | None = None,
    hidden: SizeGroup | None = None,
) -> Ruling:
    """Rule on a GPU grade.

    gpu: where it ran; None if nothing did. simulated: the verdict of the simulator, which ran
    beside it. notes: its findings, and those on tensor cores and libraries. by: of the timed cases.
    hidden: the ruling on the hidden sizes, if the lab has some.
    """
    outcomes = held_to_the_clock(outcomes, lab.problem, gpu)
    results = judge_cases(cases, outcomes, lab.problem, lab.rules)
    own = overall(results)
    every = own if hidden is None or hidden.verdict is None else worst([own, hidden.verdict])
    verdict = with_the_simulator(every, simulated, lab.rules)
    findings = (*merge_findings(outcomes), *notes)
    slow = only_slow(results, findings) and simulated in _NOTHING_AGAINST
    # Groups fail apart, if both are scored; a broken rule costs all.
    apart = hidden is not None and hidden.points is not None
    apart = apart and verdict is every and verdict not in DECIDING
    score = scoring.score(own if apart else verdict, lab.performance, results, lab.scoring, by)
    groups: tuple[SizeGroup, ...] = ()
    if hidden is not None:
        assert lab.hidden is not None
        groups = (public_group(lab.hidden, results, score), hidden)
        score = combined(score, *groups) if apart else score
    return Ruling(
        verdict=verdict,
        cases=results,
        findings=_worth_telling(findings, verdict, lab.rules),
        score=score,
        explain=verdict is Verdict.AC or (slow and verdict is own),
        groups=groups,
    )


def hidden_on_gpu(
    cases: Sequence[Case],
    outcomes: Sequence[CaseOutcome],
    public: Sequence[CaseOutcome],
    lab: Lab,
    *,
    gpu: GpuInfo | None,
    by: scoring.Yardsticks | None,
) -> SizeGroup:
    """Rule on the hidden sizes. public: outcomes of the others, for the pace."""
    held = held_to_the_clock((*outcomes, *public), lab.problem, gpu)
    return hidden_group(cases, held[: len(outcomes)], lab, by)


def with_the_simulator(on_gpu: Verdict, simulated: Verdict, rules: Rules) -> Verdict:
    """The verdict of a GPU grade, once the simulator has its say."""
    overrides = rules.findings == "fail" and simulated not in _NOTHING_AGAINST
    return simulated if on_gpu is Verdict.AC and overrides else on_gpu


def of_failure(failure: GraderError) -> Verdict:
    """The verdict when a grading ends early."""
    if isinstance(failure, Rejected):
        return failure.verdict
    return Verdict.TLE if isinstance(failure, OutOfTime) else Verdict.IE


def refute(
    why: Explanation, cases: Sequence[CaseResult], info: GpuInfo | None, problem: ProblemInfo
) -> tuple[Explanation, tuple[Finding, ...]]:
    """Drop the counts of ``why``, and note our error, if a measured speed exceeds their bound."""
    card = gpus.of(info) if info else None
    speeds = [
        case.timing.scored_speed
        for case in cases
        if case.size == why.size and case.timing and case.timing.runs
    ]
    for bound in why.bounds:
        if not bound.most or not card or bound.gpu != card.name:
            continue
        if all(speed <= bound.most.speed for speed in speeds):
            continue
        words = phrase(
            "{speed:.4g} {unit} were measured at {size}, and the model's bound says at most "
            "{most:.4g}: the model is wrong here, not the submission",
            speed=max(speeds),
            unit=problem.unit,
            size=size_text(why.size),
            most=bound.most.speed,
        )
        kept = msgspec.structs.replace(why, counts=(), tile=None, bounds=(), advice=())
        note = Finding(kind=Kind.BOUND_EXCEEDED, severity=Severity.NOTE, message=words)
        return msgspec.structs.replace(kept, missing=words), (note,)
    return why, ()
