"""The ruling on a submission: its verdict, its score, and whether its speed is worth explaining."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from grader.backends.protocol import CaseOutcome
from grader.errors import GraderError, OutOfTime, Rejected
from grader.judging import scoring
from grader.judging.size_groups import combined, hidden_group, public_group
from grader.judging.times import held_to_the_clock
from grader.judging.verdicts import (
    DECIDING,
    judge_cases,
    merge_findings,
    only_slow,
    overall,
    worst,
)
from grader.labs.lab import Case, Lab, Rules
from grader.model import CaseResult, Finding, GpuInfo, Kind, Record, Score, SizeGroup, Verdict

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
    seen: Sequence[Finding] = (),
) -> Ruling:
    """seen: notes on what the plans launch."""
    results = judge_cases(cases, outcomes, lab.problem, lab.rules)
    findings = (*merge_findings(outcomes), *seen)
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
    """The ruling of the simulator with what its hidden sizes say."""
    assert lab.hidden is not None
    verdict = ruling.verdict if hidden.verdict is None else worst([ruling.verdict, hidden.verdict])
    return msgspec.structs.replace(
        ruling,
        verdict=verdict,
        explain=ruling.explain and verdict is ruling.verdict,
        groups=(public_group(lab.hidden, ruling.cases, None), hidden),
    )


def at_timed_sizes(ruling: Ruling, verdict: Verdict, findings: Sequence[Finding]) -> Ruling:
    """The ruling with what the plans of the sizes say that only a GPU runs."""
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
    seen: Sequence[Finding],
    by: scoring.Yardsticks | None = None,
    hidden: SizeGroup | None = None,
) -> Ruling:
    """gpu: where it ran; None if nothing did. simulated, seen: what the simulator, which runs
    beside it, and the search for tensor cores and libraries say. by: of the timed cases. hidden:
    the ruling on the hidden sizes, if the lab has some.
    """
    outcomes = held_to_the_clock(outcomes, lab.problem, gpu)
    results = judge_cases(cases, outcomes, lab.problem, lab.rules)
    own = overall(results)
    every = own if hidden is None or hidden.verdict is None else worst([own, hidden.verdict])
    verdict = with_the_simulator(every, simulated, lab.rules)
    findings = (*merge_findings(outcomes), *seen)
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
    """The ruling on the hidden sizes. public: outcomes of the others, for the pace."""
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
