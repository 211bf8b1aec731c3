"""Outcomes → verdicts, by the rules that the docstring of ``grader.judge`` lists."""

import re
from collections.abc import Sequence

import msgspec

from grader.base import Finding, Kind, Verdict, kind_words, size_text
from grader.labs import Rules
from grader.results import CaseResult
from grader.run import CaseOutcome
from ptxsim.findings import LineCount, Severity
from ptxsim.text import NOTHING, Message, phrase

# Kinds of errors that are RF, RE and TLE; then all others.
ILLEGAL = frozenset(
    {Kind.OUT_OF_BOUNDS, Kind.MISALIGNED, Kind.BAD_LAUNCH, Kind.CANARY, Kind.TRAP, Kind.HOST_ACCESS}
)
STUCK = frozenset({Kind.ENDLESS_LOOP, Kind.UNTIMED_WORK, Kind.STOPPED})
_WEIGHTIEST = (
    frozenset({Kind.IMPOSSIBLE_TIME}),
    ILLEGAL,
    STUCK,
)
_WHY_IT_COUNTS = {
    Kind.RACE: phrase("on a GPU they depend on timing"),
    Kind.UNINITIALIZED_READ: phrase("they depend on what memory held before"),
    Kind.BARRIER_DIVERGENCE: phrase("on a GPU threads may hang or run ahead"),
    Kind.INPUT_MODIFIED: phrase("inputs belong to the grader"),
}
_LIMITS = {"time": phrase("did not end in time"), "deadlock": phrase("threads wait for ever")}
# Formats of 8 bits and less, as PTX and machine code name them. No lab's numbers have so few. Where
# inputs are small whole numbers, sums in FP16 are exact: values alone do not show such formats.
_NARROW = re.compile(r"\.(?:e\dm\d|[su][48]|b1)\b|\b[IQBO]G?MMA\b")
# Products with sums in FP16: that type follows the shape, in PTX after the layouts. Values do not
# show them if a program goes on in FP32 after a few terms and K is in the thousands.
_HALF_SUMS = re.compile(
    r"\bmma(?:_async)?\.\S*?k\d+(?:\.(?:row|col)){0,2}(?:\.satfinite)?\.f16\b"
    r"|\bHG?MMA(?:\.SP)?\.[\dx]+(?:\.SP)?\.F16\b"
)
DECIDING = (Verdict.FE, Verdict.CE, Verdict.RF)
_WORST_FIRST = (Verdict.IE, Verdict.RE, Verdict.TLE, Verdict.WA, Verdict.AC)


def judge_cases(
    cases: Sequence[CaseOutcome], outcomes: Sequence[CaseOutcome], rules: Rules, arithmetic: str
) -> tuple[CaseOutcome, ...]:
    """The ``cases``, which have only begun, as they end: in this order, each with its verdict.
    outcomes: of those that ran or were refused.

    A case that did not end in time is the last that counts: whether a later one ran, beside it,
    depends on the machine.
    """
    by_id = {outcome.id: outcome for outcome in outcomes}
    judged: list[CaseOutcome] = []
    late: Message | None = None  # why no later case counts
    crash: Message | None = None  # why no later case could run
    for case in cases:
        outcome, size = by_id.get(case.id), size_text(case.size)
        ruling: tuple[Verdict | None, Message]
        if late:
            ruling, outcome = (None, late), None
        elif outcome:
            ruling = judge_case(outcome, rules, arithmetic)
            if outcome.stopped == "time" or outcome.verdict is Verdict.TLE:
                late = phrase("not run: {size} did not end in time", size=size)
            if outcome.stopped == "crash":
                crash = phrase("not run: {size} ended with a runtime error", size=size)
        elif crash:
            ruling = None, crash
        else:
            late = phrase("not run: at {size} the time for all sizes was used up", size=size)
            ruling = Verdict.TLE, phrase("the time for all sizes is used up")
        verdict, message = ruling
        judged.append(msgspec.structs.replace(outcome or case, verdict=verdict, message=message))
    return tuple(judged)


def judge_case(
    outcome: CaseOutcome, rules: Rules, arithmetic: str = "f32"
) -> tuple[Verdict, Message]:
    """The verdict of one case and the reason in one line. arithmetic: the problem's."""
    broken = broken_rule(outcome.findings, rules, arithmetic)
    if broken:
        return Verdict.RF, broken
    if rules.libraries == "forbid" and any(f.kind is Kind.LIBRARY for f in outcome.findings):
        found = outcome.message
        return Verdict.RF, phrase("{found}; this lab asks for a kernel of your own", found=found)
    if outcome.verdict:
        return outcome.verdict, outcome.message
    errors = [f for f in outcome.findings if f.severity is Severity.ERROR]
    impossible, illegal, stuck = (
        next((f for f in errors if f.kind in kinds), None) for kinds in _WEIGHTIEST
    )
    if impossible:
        return Verdict.RF, impossible.message
    if illegal:
        return Verdict.RE, located(illegal)
    if outcome.stopped == "crash":
        return Verdict.RE, outcome.message
    if outcome.stopped:
        limit = outcome.message or _LIMITS[outcome.stopped]
        if place := stuck or next(iter(errors), None):
            limit = phrase("{place}: {limit}", place=located(place), limit=limit)
        return Verdict.TLE, limit
    if stuck:
        return Verdict.TLE, located(stuck)
    if outcome.error and outcome.error.wrong:
        refused = [f for f in outcome.findings if f.kind is Kind.REFUSED_CALL]
        cause = next(iter(errors or refused), None)
        if cause is None:
            return Verdict.WA, outcome.message
        words = phrase("{wrong} ({cause})")
        if outcome.steady:
            words = phrase(
                "{wrong}, and the same in another order of blocks and warps; found besides: {cause}"
            )
        return Verdict.WA, words.given(wrong=outcome.message, cause=located(cause))
    if errors:
        return Verdict.WA, why_it_counts(errors[0])
    return Verdict.AC, NOTHING


def why_it_counts(error: Finding) -> Message:
    """Say why an error makes a program wrong whose values are right."""
    why = _WHY_IT_COUNTS.get(error.kind, phrase("the program is wrong"))
    return phrase("{place}: the values are right here, but {why}", place=located(error), why=why)


def hidden_by_nvcc(case: CaseOutcome, finding: Finding) -> CaseOutcome:
    """The result of a case at which an unoptimised build shows ``finding``."""
    if case.verdict is not Verdict.AC:
        words = phrase("{wrong} ({cause})", wrong=case.message, cause=located(finding))
        return msgspec.structs.replace(case, message=words)
    words = phrase(
        "{place}: the values are right here, but only because nvcc optimises the mistake away",
        place=located(finding),
    )
    return msgspec.structs.replace(case, verdict=Verdict.WA, message=words)


def broken_rule(findings: Sequence[Finding], rules: Rules, arithmetic: str) -> Message | None:
    """Return the first rule of the lab that the code breaks, with its place; None if it keeps
    all."""
    used = [finding for finding in findings if finding.kind is Kind.TENSOR_CORE]
    if used and rules.tensor_cores == "forbid":
        return phrase("{place}: this lab forbids tensor cores", place=located(used[0]))
    narrow = [finding for finding in used if _NARROW.search(str(finding.message))]
    if narrow:
        return phrase(
            "{place}: this lab allows tensor cores for numbers of 16 bits and more",
            place=located(narrow[0]),
        )
    half = [finding for finding in used if _HALF_SUMS.search(str(finding.message))]
    if half and ".f32" in arithmetic:
        return phrase(
            "{place}: this instruction adds up in FP16, and this lab asks for sums in FP32",
            place=located(half[0]),
        )
    return None


def overall(cases: Sequence[CaseResult]) -> Verdict:
    """The submission's verdict from its cases'. Raises ValueError if there are none."""
    return worst([case.verdict for case in cases if case.verdict])


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """The first FE, CE or RF, else the worst. Raises ValueError if there are none."""
    for verdict in verdicts:
        if verdict in DECIDING:
            return verdict
    return min(verdicts, key=_WORST_FIRST.index)


def weightiest(findings: Sequence[Finding]) -> Kind | None:
    """The kind of error that decides a verdict before the others do; None without errors."""
    errors = {Kind(each.kind) for each in findings if each.severity is Severity.ERROR}

    def rank(kind: Kind) -> int:
        return next((i for i, kinds in enumerate(_WEIGHTIEST) if kind in kinds), len(_WEIGHTIEST))

    return min((kind for kind in Kind if kind in errors), key=rank, default=None)


def only_slow(results: Sequence[CaseResult], findings: Sequence[Finding]) -> bool:
    """Whether the only fault is time: some sizes are right, none is wrong, some are too slow."""
    verdicts = {result.verdict for result in results} - {None}
    errors = any(finding.severity is Severity.ERROR for finding in findings)
    return verdicts == {Verdict.AC, Verdict.TLE} and not errors


def merge_findings(outcomes: Sequence[CaseOutcome]) -> tuple[Finding, ...]:
    """The findings of all cases: one per kind and place, counts added, errors first."""
    merged: dict[tuple[object, ...], Finding] = {}
    for outcome in outcomes:
        for finding in outcome.findings:
            place = (finding.file, finding.line) if finding.file else (finding.message,)
            key: tuple[object, ...] = (finding.kind, finding.severity, *place)
            if finding.kind is Kind.IDLE_BLOCKS:  # the first size that shows it tells it
                key = (finding.kind,)
            first = merged.get(key)
            count = finding.count + (first.count if first else 0)
            merged[key] = msgspec.structs.replace(first or finding, count=count)
    order = list(Severity)

    def rank(finding: Finding) -> tuple[int, bool]:
        return order.index(finding.severity), finding.kind is Kind.HINT

    return tuple(sorted(merged.values(), key=rank))


def line_counts(outcomes: Sequence[CaseOutcome]) -> tuple[LineCount, ...]:
    """The counts of the largest case that finished."""
    complete = (outcome for outcome in outcomes if outcome.error)
    largest = max(complete, key=lambda outcome: outcome.amount, default=None)
    return largest.lines if largest else ()


def located(finding: Finding) -> Message:
    if finding.file is None or finding.line is None:
        return finding.message
    place = f"{finding.file}:{finding.line}"
    return phrase("{kind} at {place}", kind=kind_words(finding.kind), place=place)
