"""Result → what GitHub shows: annotations, a job summary, points, and SARIF for code scanning.

Workflow commands (``::error file=…,line=…::…``):
https://docs.github.com/actions/reference/workflow-commands-for-github-actions (read 2026-11-22).
A step shows ten errors and ten warnings at most. Points are reported as GitHub Classroom's
autograding-grading-reporter did: a notice "Autograding report" with totalPoints and maxPoints.

SARIF is ptxsim/findings/sarif.py's.
"""

import json
import re
from collections.abc import Iterator

from grader.base import ENGLISH, Language, Verdict, kind_words, size_text
from grader.report import formats
from grader.report import formatting as text
from grader.report.formatting import clean
from grader.results import Result
from ptxsim.findings import SarifResult, Severity, sarif_result
from ptxsim.findings import sarif as document
from ptxsim.text import phrase

_EACH = 10  # annotations of one level that GitHub shows
_ANNOTATIONS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_MARKUP = "\\`*_{}[]<>()#+!|~@:"


def workflow_commands(result: Result, folder: str = "", language: Language = ENGLISH) -> str:
    """Workflow commands, one to a line. folder: of the submission, from the repository's root."""
    return "".join(f"{line}\n" for line in _annotations(result, folder, language))


def _annotations(result: Result, folder: str, language: Language) -> Iterator[str]:
    earned = formats.points(result)
    if earned is None:
        title = language(phrase("The grader failed"))
        yield command("error", formats.why(result, language), title=title)
        return
    for error in formats.compile_errors(result)[:_EACH]:
        title = language(phrase("compile error"))
        yield command("error", error.text, _at(folder, error.file), error.line, title)
    for severity, level in _ANNOTATIONS.items():
        found = [finding for finding in formats.located(result) if finding.severity is severity]
        for finding in found[:_EACH]:
            said, title = finding.message, language(kind_words(finding.kind))
            if finding.count > 1:
                said = phrase("{what} ({times} times)", what=said, times=finding.count)
            yield command(level, language(said), _at(folder, finding.file), finding.line, title)
    if rest := formats.unplaced(result, language):
        title = formats.headline(result, language)
        yield command("error", rest, _at(folder, result.problem.main), 1, title)
    said = phrase("Points {points}", points=str(earned))
    yield command("notice", language(said), title="Autograding complete")
    totals = {"totalPoints": earned.earned, "maxPoints": earned.possible}
    yield command("notice", json.dumps(totals), title="Autograding report")


def command(
    level: str, message: str, file: str | None = None, line: int | None = None, title: str = ""
) -> str:
    """A workflow command. Students write parts of it, so everything is escaped."""
    fields = {"file": file, "line": line, "title": title}
    escaped = {name: _escaped(str(value)) for name, value in fields.items() if value}
    named = ",".join(
        f"{name}={value.replace(':', '%3A').replace(',', '%2C')}" for name, value in escaped.items()
    )
    return f"::{level}{' ' if named else ''}{named}::{_escaped(message)}"


def _at(folder: str, file: str | None) -> str:
    return f"{folder}/{file}" if folder else str(file)


def _escaped(message: str) -> str:
    return clean(message).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def job_summary(result: Result, language: Language = ENGLISH) -> str:
    """Markdown for $GITHUB_STEP_SUMMARY. What students wrote stands in code blocks."""
    earned = formats.points(result)
    lines = [f"## {formats.headline(result, language)}", ""]
    if earned is not None:
        lines += [language(phrase("Points: **{points}**", points=str(earned))), ""]
    if result.cases:
        verdict = language(phrase("verdict"))
        lines += [f"| M×N×K | {verdict} | |", "|---|---|---|"]
        for case in result.cases:
            verdict = formats.verdict_name(case.verdict, language)
            # No markup and no link: what students wrote is text.
            signs = (
                f"&#{ord(c)};" if c in _MARKUP else c for c in formats.what_happened(case, language)
            )
            said = "".join(signs).replace("\n", "<br>")
            lines.append(f"| {size_text(case.size)} | {verdict} | {said} |")
        lines.append("")
    whole = formats.summary(result, language)
    fence = "`" * (1 + max(map(len, ["``", *re.findall("`+", whole)])))
    lines += [fence, whole, fence, ""]
    return "\n".join(lines)


def outputs(result: Result) -> str:
    """Lines for $GITHUB_OUTPUT, which later steps can read."""
    earned = formats.points(result)
    lines = [f"verdict={result.verdict.value}"]
    if earned is not None:
        lines += [f"points={earned.earned:g}", f"max-points={earned.possible:g}"]
    return "".join(f"{line}\n" for line in lines)


# --- SARIF -------------------------------------------------------------------------------------

_COMPILE_ERROR = "compile-error"


def sarif(result: Result, folder: str = "", language: Language = ENGLISH) -> str:
    """One run. folder: of the submission, from the root of the workspace.

    A failure of the grader is a run that did not succeed, with no results.
    """
    failed = result.verdict is Verdict.IE
    results = [] if failed else list(_results(result, folder, language))
    rule = _verdict_rule(result)
    words = {rule: language(text.VERDICT_WORDS[result.verdict])}
    used = words if any(each.rule == rule for each in results) else {}
    why = formats.why(result, language) if failed else None
    version = result.environment.grader
    return document("sgemm-grader", version, result.lab.id, results, why, used)


def _results(result: Result, folder: str, language: Language) -> Iterator[SarifResult]:
    main = result.problem.main
    for error in formats.compile_errors(result):
        yield SarifResult(
            rule=_COMPILE_ERROR,
            severity=Severity.ERROR,
            message=error.text,
            path=_at(folder, error.file),
            line=error.line or 1,
            same=error.text,
        )
    for finding in result.findings:
        path = _at(folder, finding.file or main)
        yield sarif_result(finding, finding.kind.value, language(finding.message), path)
    if rest := formats.unplaced(result, language):
        yield SarifResult(
            rule=_verdict_rule(result),
            severity=Severity.ERROR,
            message=rest,
            path=_at(folder, main),
            line=1,
            same=formats.unplaced(result),
        )


def _verdict_rule(result: Result) -> str:
    return f"verdict-{result.verdict.value.lower()}"
