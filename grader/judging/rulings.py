"""The ruling on a submission: its verdict, its score, and whether its speed is worth explaining."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from grader.backends.protocol import CaseOutcome
from grader.errors import GraderError, OutOfTime, Rejected
from grader.judging import scoring
from grader.judging.times import held_to_the_clock
from grader.judging.verdicts import judge_cases, merge_findings, only_slow, overall
from grader.labs.lab import Case, Lab, Rules
from grader.model import CaseResult, Finding, GpuInfo, Record, Score, Verdict

_NOTHING_AGAINST = (Verdict.AC, Verdict.IE)  # IE: the simulator could not run it


class Ruling(Record):
    verdict: Verdict
    cases: tuple[CaseResult, ...]
    findings: tuple[Finding, ...]
    score: Score | None
    explain: bool  # whether to say why it is as fast as it is


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
        findings=findings,
        score=None,
        explain=verdict is Verdict.AC or only_slow(results, findings),
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
) -> Ruling:
    """gpu: where it ran; None if nothing did. simulated, seen: what the simulator, which runs
    beside it, and the search for tensor cores and libraries say.
    """
    outcomes = held_to_the_clock(outcomes, lab.problem, gpu)
    results = judge_cases(cases, outcomes, lab.problem, lab.rules)
    verdict = with_the_simulator(overall(results), simulated, lab.rules)
    findings = (*merge_findings(outcomes), *seen)
    slow = only_slow(results, findings) and simulated in _NOTHING_AGAINST
    return Ruling(
        verdict=verdict,
        cases=results,
        findings=findings,
        score=scoring.score(verdict, lab.performance, results, lab.scoring),
        explain=verdict is Verdict.AC or slow,
    )


def with_the_simulator(on_gpu: Verdict, simulated: Verdict, rules: Rules) -> Verdict:
    """The verdict of a GPU grade, once the simulator has its say."""
    overrides = rules.findings == "fail" and simulated not in _NOTHING_AGAINST
    return simulated if on_gpu is Verdict.AC and overrides else on_gpu


def of_failure(failure: GraderError) -> Verdict:
    """The verdict when a grading ends early."""
    if isinstance(failure, Rejected):
        return failure.verdict
    return Verdict.TLE if isinstance(failure, OutOfTime) else Verdict.IE
