"""Verdict and score of a submission, from its public sizes, its hidden ones and the simulator.

A hidden group says how many sizes are right, the verdict, one kind of mistake and whole points:
nothing else of a hidden size leaves this module. Code under test chooses what goes wrong at which
size. A line, a message, a value or a time would be a channel through which it could tell the size.
So would several kinds of mistakes: each would be a bit, and a program can make them all at once. So
one kind is kept, and no count. Points are rounded, because code can choose how long it takes.
"""

from collections.abc import Sequence

import msgspec

from grader import base
from grader.judge import scoring, verdicts
from grader.labs import Lab, Rules
from grader.results import CaseResult, Judgement, Score, SizeGroup, weighted_mean
from grader.run import CaseOutcome

_NOTHING_AGAINST = (base.Verdict.AC, base.Verdict.IE)  # IE: the simulator could not run it


class Ruling(Judgement):
    """A judgement as far as the stages ran, and what no document has of it."""

    cases: tuple[CaseOutcome, ...] = ()
    gpu: base.GpuInfo | None = None
    printed: str = ""  # by device printf in the smallest case that printed anything
    explain: bool = False  # whether to say why it is as fast as it is


# Whatever ends a grading early. An OSError is a full disk or a deleted folder.
FATAL = (base.Rejected, base.OutOfTime, base.MachineError, OSError)


def from_failure(failure: base.Rejected | base.OutOfTime | base.MachineError | OSError) -> Ruling:
    """Return what is left of a grading that ``failure`` ended."""
    if isinstance(failure, base.Rejected):
        return Ruling(
            verdict=failure.verdict,
            error=failure.message,
            build=failure.build,
            findings=failure.findings,
        )
    if isinstance(failure, OSError):
        failure = base.MachineError.of(failure)
    late = isinstance(failure, base.OutOfTime)
    return Ruling(verdict=base.Verdict.TLE if late else base.Verdict.IE, error=failure.message)


def rule(
    cases: Sequence[CaseOutcome],
    outcomes: Sequence[CaseOutcome],
    lab: Lab,
    notes: Sequence[base.Finding] = (),
) -> Ruling:
    """Rule on one group of sizes by itself. cases: as they began, all of them; outcomes: of those
    that ran or were refused; notes: on what its plans launch."""
    judged = verdicts.judge_cases(cases, outcomes, lab.rules, lab.problem.arithmetic)
    return Ruling(
        verdict=verdicts.overall(judged),
        cases=judged,
        findings=(*verdicts.merge_findings(outcomes), *notes),
        lines=verdicts.line_counts(outcomes),
        printed=next((each.printed for each in outcomes if each.printed), ""),
    )


def conclude(
    public: Ruling,
    lab: Lab,
    *,
    hidden: SizeGroup | None = None,
    simulated: Ruling | None = None,
    yardsticks: scoring.Yardsticks | None = None,
) -> Ruling:
    """Rule on the submission: its public sizes, and what else counts.

    simulated: the simulator's ruling, which ran beside a GPU. yardsticks: of the sizes that a GPU
    times; None in the simulator.
    """
    own, rules, findings = public.verdict, lab.rules, public.findings
    every = verdicts.worst([own, hidden.verdict]) if hidden and hidden.verdict else own
    verdict, against = every, False
    if simulated is not None:
        against = simulated.verdict not in _NOTHING_AGAINST
        verdict = with_the_simulator(every, simulated.verdict, rules)
        findings += _unknown(simulated.findings, findings)
        lines, printed = simulated.lines, simulated.printed
        public = msgspec.structs.replace(public, lines=lines, printed=printed)
    slow = verdicts.only_slow(public.cases, findings) and not against
    # Groups fail apart, if both are scored; a broken rule costs all.
    apart = verdict is every and verdict not in verdicts.DECIDING
    secret = hidden.points if hidden is not None and apart else None
    score = None
    if yardsticks is not None:
        counts = verdict if secret is None else own
        times = {case.id: case.timing for case in public.cases}
        score = scoring.score(counts, lab.performance, times, lab.scoring, yardsticks)
    groups: tuple[SizeGroup, ...] = ()
    if hidden is not None:
        groups = (_public_group(public, lab, score), hidden)
        if score is not None and secret is not None:
            total = weighted_mean([(groups[0].weight, score.total), (hidden.weight, secret)])
            score = msgspec.structs.replace(score, total=round(total, 2))
    return msgspec.structs.replace(
        public,
        verdict=verdict,
        findings=_worth_telling(findings, verdict, rules),
        score=score,
        groups=groups,
        explain=verdict is own and (own is base.Verdict.AC or slow),
    )


def with_the_simulator(on_gpu: base.Verdict, simulated: base.Verdict, rules: Rules) -> base.Verdict:
    """The verdict of a GPU grade, once the simulator has its say."""
    overrides = rules.findings == "fail" and simulated not in _NOTHING_AGAINST
    return simulated if on_gpu is base.Verdict.AC and overrides else on_gpu


def _unknown(
    found: Sequence[base.Finding], known: Sequence[base.Finding]
) -> tuple[base.Finding, ...]:
    """The simulator's findings without those on launches that the GPU's grade has itself."""
    subjects = {finding.subject for finding in known}
    return tuple(
        finding
        for finding in found
        if finding.kind is not base.Kind.LIBRARY
        and not (finding.kind is base.Kind.REFUSED_CALL and finding.subject in subjects)
    )


def _worth_telling(
    findings: Sequence[base.Finding], verdict: base.Verdict, rules: Rules
) -> tuple[base.Finding, ...]:
    """Leave out notes on tensor cores that nobody forbids; after RF, why elements may be wrong."""
    idle = base.Kind.HINT if verdict is base.Verdict.RF else None
    if idle is None and rules.tensor_cores == "allow":
        idle = base.Kind.TENSOR_CORE
    return tuple(finding for finding in findings if finding.kind is not idle)


# --- groups ------------------------------------------------------------------------------------


def reduced(
    found: Ruling | None, lab: Lab, sizes: int, yardsticks: scoring.Yardsticks | None = None
) -> SizeGroup:
    """All that is kept of the hidden sizes.

    found: None if they did not run. sizes: 0 where the seed is not at hand. yardsticks: for the
    points of the timed cases; None where nothing is timed.
    """
    assert lab.hidden is not None
    group = SizeGroup(name="hidden", weight=lab.hidden.weight, sizes=sizes)
    if found is None:
        return group
    kind, score = verdicts.weightiest(found.findings), None
    if yardsticks is not None and found.cases:
        timed, times = lab.hidden.performance, {case.id: case.timing for case in found.cases}
        score = scoring.score(found.verdict, timed, times, lab.scoring, yardsticks)
    return msgspec.structs.replace(
        group,
        right=_right(found.cases),
        verdict=found.verdict,
        mistakes=() if kind is None else (kind,),
        points=float(round(score.total)) if score else None,
    )


def _public_group(public: Ruling, lab: Lab, score: Score | None) -> SizeGroup:
    assert lab.hidden is not None
    return SizeGroup(
        name="public",
        weight=lab.hidden.public_weight,
        sizes=len(public.cases),
        right=_right(public.cases),
        verdict=verdicts.overall(public.cases),
        points=score.total if score else None,
    )


def _right(results: Sequence[CaseResult]) -> int:
    return sum(result.verdict is base.Verdict.AC for result in results)
