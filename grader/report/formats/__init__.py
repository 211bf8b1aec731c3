"""Result → the formats that course systems, CI and editors read; pure. Here: what all of them show.

Points: on a GPU the score; in the simulator, which cannot time anything, the share of sizes that
are right, of 100; with hidden sizes, each group's share by its weight. A result with verdict IE has
no points: a failure of the grader is never a zero.
"""

import math
from collections.abc import Iterator

from grader import base
from grader.build import Complaint, complaints
from grader.report import formatting as text
from grader.report.formatting import clean
from grader.report.groups import group_sentences, right_of
from grader.results import CaseResult, Result, SizeGroup, points_of, sizes_tell
from ptxsim.plan import Record
from ptxsim.text import phrase

FINDINGS = 20  # in a summary
_LOG_CHARACTERS = 10_000


class Points(Record):
    earned: float
    possible: float

    def __str__(self) -> str:
        return "/".join(
            f"{value:.2f}".rstrip("0").rstrip(".") for value in (self.earned, self.possible)
        )

    @property
    def share(self) -> float:
        return self.earned / self.possible

    @property
    def percent(self) -> int:
        """Rounded down: 100 means everything."""
        return math.floor(100 * self.share + 1e-9)


def points(result: Result) -> Points | None:
    """None for verdict IE, and of what is right and the model does not grade."""
    if result.verdict is base.Verdict.IE or (result.by_model and result.by_model.ungraded):
        return None
    sizes, device = [case.verdict for case in result.cases], result.environment.device
    earned = points_of(device, result.verdict, sizes, result.groups, result.score)
    score = result.score if device == "gpu" or result.by_model else None
    return Points(earned=earned, possible=score.max if score else 100.0)


def hidden_group(result: Result) -> SizeGroup | None:
    """The hidden sizes, where they were graded."""
    return next((each for each in result.groups if each.name == "hidden" and each.sizes), None)


def sizes_count(result: Result) -> bool:
    """Whether each size has points of its own: in the simulator, if the sizes tell the verdict."""
    verdicts = [case.verdict for case in result.cases]
    return bool(verdicts) and sizes_tell(result.verdict, verdicts, result.groups)


class SizeView(Record):
    """A public size, or all hidden ones together: the document tells no hidden size, whoever reads
    it."""

    name: str
    verdict: base.Verdict | None
    words: str
    hidden: bool
    points: Points | None  # None where sizes have no points of their own


def sizes(result: Result, language: base.Language) -> Iterator[SizeView]:
    """The public sizes, then the hidden ones as one. A public size in the simulator has one point,
    unless the lab weighs groups."""
    simulated = result.environment.device == "cpu" and sizes_count(result) and not result.by_model
    public = next((each for each in result.groups if each.name == "public"), None)
    each = public.weight / public.sizes if public else 1.0
    for case in result.cases:
        earned = Points(earned=each * (case.verdict is base.Verdict.AC), possible=each)
        yield SizeView(
            name=base.size_text(case.size),
            verdict=case.verdict,
            words=what_happened(case, language),
            hidden=False,
            points=earned if simulated else None,
        )
    if group := hidden_group(result):
        earned = Points(earned=group.weight * group.right / group.sizes, possible=group.weight)
        yield SizeView(
            name=language(phrase("hidden sizes")),
            verdict=group.verdict,
            words=language(right_of(group)),
            hidden=True,
            points=earned if simulated else None,
        )


def headline(result: Result, language: base.Language = base.ENGLISH) -> str:
    return f"{result.verdict.value} {language(text.VERDICT_WORDS[result.verdict])}"


def why(result: Result, language: base.Language = base.ENGLISH) -> str:
    """The reason for the verdict, where it is not a size's, or for there being no points."""
    if result.by_model and result.by_model.ungraded:
        return text.score_block(result, language)
    return clean(language(result.error)) if result.error else headline(result, language)


def summary(result: Result, language: base.Language = base.ENGLISH) -> str:
    """Verdict, why, score, findings and the compiler's log, as plain text."""
    lines = [headline(result, language)]
    if result.error:
        lines.append(why(result, language))
    if result.score or result.by_model:
        lines.append(text.score_block(result, language))
    lines += map(language, group_sentences(result))
    for finding in result.findings[:FINDINGS]:
        said = phrase(
            "{severity}: {kind}: {what}",
            severity=base.severity_words(finding.severity),
            kind=base.kind_words(finding.kind),
            what=finding.message,
        )
        lines += [clean(language(said)), f"  {clean(language(text.place(finding)))}"]
    if result.build and not result.build.ok:
        lines.append(clean(result.build.log.strip())[:_LOG_CHARACTERS])
    timed = result.environment.device == "gpu" or result.score or result.by_model
    if not timed and result.verdict is not base.Verdict.IE:
        lines.append(language(text.NO_SCORE_ON_CPU))
    return "\n".join(lines)


def verdict_name(verdict: base.Verdict | None, language: base.Language = base.ENGLISH) -> str:
    return verdict.value if verdict else language(phrase("not run"))


def what_happened(case: CaseResult, language: base.Language = base.ENGLISH) -> str:
    """The message and the first wrong element, if any."""
    said = (case.message, text.mismatch(case))
    return "\n".join(clean(language(part)) for part in said if part)


def located(result: Result) -> tuple[base.Finding, ...]:
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


def unplaced(result: Result, language: base.Language = base.ENGLISH) -> str:
    """Say what is wrong where nothing names a line; "" if something does, or nothing is wrong."""
    if result.verdict is base.Verdict.AC or located(result) or compile_errors(result):
        return ""
    failed = next((case for case in result.cases if case.verdict is result.verdict), None)
    if failed is None:
        secret = hidden_group(result)
        if result.error is None and secret is not None and secret.verdict is result.verdict:
            return language(phrase("hidden sizes: {what}", what=right_of(secret)))
        return why(result, language)
    what = what_happened(failed, language)
    return language(phrase("{size}: {what}", size=base.size_text(failed.size), what=what))
