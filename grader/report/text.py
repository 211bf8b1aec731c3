"""Words and short texts that all renderers share."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from grader.model import (
    CaseResult,
    Finding,
    Modes,
    ProblemInfo,
    Record,
    Result,
    Severity,
    Standing,
    StandingRung,
    Verdict,
    size_text,
)
from ptxsim.findings.names import kernel_name as kernel_name

VERDICT_WORDS = {
    Verdict.AC: "accepted",
    Verdict.WA: "wrong answer",
    Verdict.CE: "compile error",
    Verdict.RE: "runtime error",
    Verdict.TLE: "time limit exceeded",
    Verdict.FE: "not the interface the lab asks for",
    Verdict.RF: "forbidden by the lab's rules",
    Verdict.IE: "the grader failed; this says nothing about the submission",
}
NO_SCORE_ON_CPU = (
    "No performance score: the simulator on the CPU checks correctness; only a GPU can be timed."
)
_NAMED = 3  # sizes with the same message that are listed
_COUNTED = re.compile(r"\A(the one element is|[0-9]+ of [0-9]+ elements are) wrong")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """The text without terminal control characters: students write these texts."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def place(finding: Finding) -> str:
    """``sgemm.cu:17, block (2,0,0) thread (0,0,0), 12 times``, as far as known."""
    parts = []
    if finding.file is not None:
        parts.append(source_line(finding.file, finding.line))
    where = [
        f"{name} ({','.join(map(str, value))})"
        for name, value in (("block", finding.block), ("thread", finding.thread))
        if value is not None
    ]
    if where and where[-1] not in finding.message:
        parts.append(" ".join(where))
    if finding.count > 1:
        parts.append(f"{finding.count} times")
    return ", ".join(parts)


def source_line(file: str, line: int | None) -> str:
    return f"{file}:{line}" if line is not None else file


class Told(Record):
    """A message and the sizes that it is about."""

    sizes: str
    message: str
    first: CaseResult


def told(cases: Sequence[CaseResult]) -> tuple[Told, ...]:
    """Every message once, in the order of the sizes; how many elements are wrong does not count."""
    groups: dict[str, list[CaseResult]] = {}
    for case in cases:
        if case.message:
            groups.setdefault(_COUNTED.sub("elements are wrong", case.message), []).append(case)
    return tuple(
        Told(
            sizes=_listed(group),
            message=message if len(group) > 1 else group[0].message,
            first=group[0],
        )
        for message, group in groups.items()
    )


def wrong(case: CaseResult) -> str:
    """``9 of 24``: elements of the output; "" when none is wrong."""
    if case.error is None or not case.error.wrong:
        return ""
    return f"{case.error.wrong} of {math.prod(case.error.shape)}"


def error_ratio(case: CaseResult) -> str:
    """The largest error in units of the tolerance; of an exact problem, the error itself."""
    if case.error is None:
        return ""
    if case.error.max is None:
        return "NaN or ∞"
    ratio = case.error.max / case.error.tolerance if case.error.tolerance else case.error.max
    return f"{ratio:.2f}" if ratio < 1000 else f"{ratio:.0e}"


def size_header(problem: ProblemInfo) -> str:
    """``M×N×K``."""
    return "×".join(name.upper() for name in problem.dims)


def picture_caption(case: CaseResult) -> str:
    """What a map of wrong elements shows: ``C of 64×64×32, each sign is 2×2 elements``."""
    error = case.error
    assert error is not None
    edge = error.tile_edge
    each = f"{edge}×{edge} elements" if len(error.shape) == 2 else f"{edge} elements in a row"
    return f"{error.operand} of {size_text(case.size)}; each sign is " + (
        each if edge > 1 else "one element"
    )


def _listed(cases: Sequence[CaseResult]) -> str:
    """``64×64×64, 65×65×65, 66×66×66 and 4 more sizes``."""
    names = ", ".join(size_text(case.size) for case in cases[:_NAMED])
    more = len(cases) - _NAMED
    return names if more <= 0 else f"{names} and {more} more size{'s' if more > 1 else ''}"


def mismatch(case: CaseResult) -> str:
    """``first wrong: C[row 3, column 0] is nan, should be 1.5``, or ""."""
    first = case.error.first_mismatch if case.error else None
    if first is None:
        return ""
    return f"first wrong element: {first.element} is {first.got_text}, should be {first.want:.7g}"


def fix_first(result: Result) -> str:
    """Why there is no advice on speed, and what to fix first; "" when there may be advice."""
    if result.explanation is not None or result.verdict in (Verdict.AC, Verdict.IE):
        return ""
    failed = next((case for case in result.cases if case.verdict is result.verdict), None)
    first = [f"{size_text(failed.size)}: {failed.message}"] if failed else []
    # On a GPU the values may be right although the simulator found why they need not be.
    errors = [each for each in result.findings if each.severity is Severity.ERROR and each.line]
    places = [f"{each.file}:{each.line}" for each in errors]
    if errors and not any(place in said for place in places for said in first):
        first.append(f"{errors[0].kind.value} at {places[0]}")
    return (
        f"No advice on speed before every size is right. First {'; '.join(first)}" if first else ""
    )


def standing(standing: Standing, problem: ProblemInfo) -> str:
    """``Between rung 9 (unrolled) and rung 10 (strided 2x2) at 8192×8192×8192: …``."""
    own = f"{100 * standing.ratio:.1f} % of {problem.baseline} at {size_text(standing.size)}"
    if not standing.ahead:
        assert standing.below
        return f"{own}: faster than every rung; the fastest is {_rung(standing.below)}."
    if standing.below is None:
        return f"{own}: slower than {_rung(standing.ahead[-1])}."
    return f"{own}: between {_rung(standing.below)} and {_rung(standing.ahead[-1])}."


def _rung(rung: StandingRung) -> str:
    share = f", {100 * rung.ratio:.1f} %" if rung.ratio is not None else ""
    return f"rung {rung.number} ({rung.name.partition('_')[2].replace('_', ' ')}{share})"


def score_block(result: Result) -> str:
    """The score in the published judge's format, or "" when there is none."""
    if result.score is None:
        return ""
    weights = {share.case: share.weight for share in result.score.shares}
    weighted = len(set(weights.values())) > 1
    lines = [
        f"Score {result.score.total:.2f} max.{result.score.max:g} "
        f"({'Weighted' if weighted else 'Unweighted'})",
        "Judgement Message:",
    ]
    unit, baseline = result.problem.unit, result.problem.baseline.lower()
    timed = [case for case in result.cases if case.timing is not None]
    for case in timed:
        assert case.timing is not None
        runs = case.timing.runs
        if len(timed) > 1:
            weight = f", weight {weights[case.id]:g}" if weighted else ""
            lines.append(f"  {size_text(case.size)}{weight}:")
        lines += [
            f"  {_ordinal(i)} run. bench: {run.speed:.6g} {unit}, "
            f"{baseline}: {run.baseline_speed:.6g} {unit}."
            for i, run in enumerate(runs, 1)
        ]
        lines.append(
            f"  max bench: {max(run.speed for run in runs):.6g} {unit}, "
            f"max {baseline}: {max(run.baseline_speed for run in runs):.6g} {unit}."
        )
        if case.timing.modes:
            lines.append(f"  bench: {two_speeds(case.timing.modes, unit)}.")
    return "\n".join(lines)


def two_speeds(modes: Modes, unit: str) -> str:
    """The effect on the score when the repetitions of a size have two speeds."""
    fast, slow = modes.fast, modes.slow
    return (
        f"two speeds, {fast.speed:.6g} {unit} in {100 * fast.share:.0f} % of the repetitions and "
        f"{slow.speed:.6g} in the others, further apart than noise explains: "
        "the slower one is scored"
    )


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
