"""What a course system shows of a result, the same in every format.

Points: on a GPU the score; in the simulator, which cannot time anything, the share of sizes that
are right, of 100. A result with verdict IE has no points: a failure of the grader is never a zero.
"""

from __future__ import annotations

import math

from grader.compile.diagnostics import Complaint, complaints
from grader.labs.hidden import is_hidden
from grader.language import ENGLISH, Language
from grader.model import (
    CaseResult,
    Finding,
    Record,
    Result,
    Verdict,
    kind_words,
    phrase,
    severity_words,
    size_text,
)
from grader.report import text
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
    right = sum(case.verdict is Verdict.AC for case in result.cases) if by_size(result) else 0
    return Points(earned=100 * right / max(1, len(result.cases)), possible=100.0)


def by_size(result: Result) -> bool:
    """Whether the sizes tell the verdict. A broken rule, for example, concerns all of them."""
    return all(case.verdict is Verdict.AC for case in result.cases) == (
        result.verdict is Verdict.AC
    )


def headline(result: Result, language: Language = ENGLISH) -> str:
    return f"{result.verdict.value} {language(text.VERDICT_WORDS[result.verdict])}"


def why(result: Result, language: Language = ENGLISH) -> str:
    """The reason for the verdict, where it is not a size's."""
    return clean(language(result.error)) if result.error else headline(result, language)


def summary(result: Result, language: Language = ENGLISH) -> str:
    """Verdict, why, score, findings and the compiler's log, as plain text without hidden sizes."""
    lines = [headline(result, language)]
    if result.error:
        lines.append(why(result, language))
    if result.score:
        lines.append(text.score_block(result, language))
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


def size_name(case: CaseResult, number: int, language: Language = ENGLISH) -> str:
    """For students: a hidden size has only its number."""
    hidden = phrase("hidden size {number}", number=number)
    return language(hidden) if is_hidden(case) else size_text(case.size)


def verdict_name(case: CaseResult, language: Language = ENGLISH) -> str:
    return case.verdict.value if case.verdict else language(phrase("not run"))


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
        return why(result, language)
    said = headline(result, language) if is_hidden(failed) else what_happened(failed, language)
    size = size_name(failed, result.cases.index(failed) + 1, language)
    return language(phrase("{size}: {what}", size=size, what=said))


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
