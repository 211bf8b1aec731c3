"""What a course system shows of a result, the same in every format.

Points: on a GPU the score; in the simulator, which cannot time anything, the share of sizes that
are right, of 100; with hidden sizes, each group's share by its weight. A result with verdict IE has
no points: a failure of the grader is never a zero.
"""

from __future__ import annotations

import math

from grader.compile.diagnostics import Complaint, complaints
from grader.language import ENGLISH, Language
from grader.model import (
    CaseResult,
    Finding,
    Record,
    Result,
    SizeGroup,
    Verdict,
    kind_words,
    phrase,
    severity_words,
    share_right,
    size_text,
)
from grader.report import text
from grader.report.size_groups import group_sentences, right_of
from grader.report.text import clean

_FINDINGS = 20  # in a summary
_LOG_CHARACTERS = 10_000


class Points(Record):
    earned: float
    possible: float

    def __str__(self) -> str:
        return f"{_short(self.earned)}/{_short(self.possible)}"

    @property
    def share(self) -> float:
        return self.earned / self.possible

    @property
    def percent(self) -> int:
        """Rounded down: 100 means everything."""
        return math.floor(100 * self.share + 1e-9)


def points(result: Result) -> Points | None:
    """None for verdict IE."""
    if result.verdict is Verdict.IE:
        return None
    if result.environment.device == "gpu":
        score = result.score
        return Points(earned=score.total if score else 0.0, possible=score.max if score else 100.0)
    if not by_size(result):
        return Points(earned=0.0, possible=100.0)
    if result.groups:
        return Points(earned=100 * share_right(result.groups), possible=100.0)
    right = sum(case.verdict is Verdict.AC for case in result.cases)
    return Points(earned=100 * right / max(1, len(result.cases)), possible=100.0)


def by_size(result: Result) -> bool:
    """Whether the sizes tell the verdict. A broken rule, for example, concerns all of them."""
    verdicts = [case.verdict for case in result.cases]
    verdicts += [group.verdict for group in result.groups if group.sizes]
    return all(verdict is Verdict.AC for verdict in verdicts) == (result.verdict is Verdict.AC)


def hidden_group(result: Result) -> SizeGroup | None:
    """The hidden sizes, where they were graded."""
    return next((each for each in result.groups if each.name == "hidden" and each.sizes), None)


def points_per_size(result: Result) -> float:
    """In the simulator, of a public size: one, unless the lab weighs groups."""
    public = next((each for each in result.groups if each.name == "public"), None)
    return public.weight / public.sizes if public else 1.0


def headline(result: Result, language: Language = ENGLISH) -> str:
    return f"{result.verdict.value} {language(text.VERDICT_WORDS[result.verdict])}"


def why(result: Result, language: Language = ENGLISH) -> str:
    """The reason for the verdict, where it is not a size's."""
    return clean(language(result.error)) if result.error else headline(result, language)


def summary(result: Result, language: Language = ENGLISH) -> str:
    """Verdict, why, score, findings and the compiler's log, as plain text."""
    lines = [headline(result, language)]
    if result.error:
        lines.append(why(result, language))
    if result.score:
        lines.append(text.score_block(result, language))
    lines += map(language, group_sentences(result))
    lines += [
        clean(
            language(
                phrase(
                    "{severity}: {kind}: {what}",
                    severity=severity_words(finding.severity),
                    kind=kind_words(finding.kind),
                    what=finding.message,
                )
            )
        )
        + f"\n  {clean(language(text.place(finding)))}"
        for finding in result.findings[:_FINDINGS]
    ]
    if result.build and not result.build.ok:
        lines.append(clean(result.build.log.strip())[:_LOG_CHARACTERS])
    if result.environment.device == "cpu" and result.verdict is not Verdict.IE:
        lines.append(language(text.NO_SCORE_ON_CPU))
    return "\n".join(lines)


def verdict_name(verdict: Verdict | None, language: Language = ENGLISH) -> str:
    return verdict.value if verdict else language(phrase("not run"))


def what_happened(case: CaseResult, language: Language = ENGLISH) -> str:
    """The message and the first wrong element, if any."""
    said = (case.message, text.mismatch(case))
    return "\n".join(clean(language(part)) for part in said if part)


def located(result: Result) -> tuple[Finding, ...]:
    """Findings with a line, the worst first."""
    order = ("error", "warning", "note")
    found = [finding for finding in result.findings if finding.file and finding.line]
    return tuple(sorted(found, key=lambda finding: order.index(finding.severity.value)))


def compile_errors(result: Result) -> tuple[Complaint, ...]:
    """The compiler's errors that name a line of the submission."""
    if result.build is None or result.build.ok:
        return ()
    names = {file.name for file in result.submission.files}
    return tuple(each for each in complaints(result.build.log) if each.file in names and each.line)


def unplaced(result: Result, language: Language = ENGLISH) -> str:
    """What is wrong where nothing names a line; "" if something does, or nothing is wrong."""
    if result.verdict is Verdict.AC or located(result) or compile_errors(result):
        return ""
    failed = next((case for case in result.cases if case.verdict is result.verdict), None)
    if failed is None:
        secret = hidden_group(result)
        if result.error is None and secret is not None and secret.verdict is result.verdict:
            return language(phrase("hidden sizes: {what}", what=right_of(secret)))
        return why(result, language)
    what = what_happened(failed, language)
    return language(phrase("{size}: {what}", size=size_text(failed.size), what=what))


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
