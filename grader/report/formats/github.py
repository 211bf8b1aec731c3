"""Result → what GitHub Actions shows: annotations at lines, a job summary in Markdown, points.

Workflow commands (``::error file=…,line=…::…``):
https://docs.github.com/actions/reference/workflow-commands-for-github-actions (read 2026-11-22).
A step shows ten errors and ten warnings at most. Points are reported as GitHub Classroom's
autograding-grading-reporter did: a notice "Autograding report" with totalPoints and maxPoints.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from grader.language import ENGLISH, Language
from grader.model import (
    Finding,
    Result,
    Severity,
    Verdict,
    counted,
    kind_words,
    phrase,
    size_text,
)
from grader.report.formats.course_view import (
    compile_errors,
    headline,
    located,
    points,
    summary,
    unplaced,
    verdict_name,
    what_happened,
    why,
)
from grader.report.text import clean

_EACH = 10  # annotations of one level that GitHub shows
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def workflow_commands(result: Result, folder: str = "", language: Language = ENGLISH) -> str:
    """Workflow commands, one to a line. folder: of the submission, from the repository's root."""
    return "".join(f"{line}\n" for line in _annotations(result, folder, language))


def _annotations(result: Result, folder: str, language: Language) -> Iterator[str]:
    if result.verdict is Verdict.IE:
        title = language(phrase("The grader failed"))
        yield command("error", why(result, language), title=title)
        return
    for error in compile_errors(result)[:_EACH]:
        title = language(phrase("compile error"))
        yield command("error", error.text, _at(folder, error.file), error.line, title)
    for level in Severity:
        found = [finding for finding in located(result) if finding.severity is level]
        for finding in found[:_EACH]:
            yield _finding(finding, folder, language)
    if rest := unplaced(result, language):
        yield command(
            "error", rest, _at(folder, result.problem.main), 1, headline(result, language)
        )
    earned = points(result)
    assert earned is not None
    said = language(phrase("Points {points}", points=str(earned)))
    yield command("notice", said, title="Autograding complete")
    totals = {"totalPoints": earned.earned, "maxPoints": earned.possible}
    yield command("notice", json.dumps(totals), title="Autograding report")


def command(
    level: str, message: str, file: str | None = None, line: int | None = None, title: str = ""
) -> str:
    """A workflow command. Students write parts of it, so everything is escaped."""
    fields = {"file": file, "line": line, "title": title}
    named = ",".join(f"{name}={_field(str(it))}" for name, it in fields.items() if it)
    return f"::{level}{' ' if named else ''}{named}::{_escaped(clean(message))}"


def _finding(finding: Finding, folder: str, language: Language) -> str:
    said = counted("{what}", "{what} ({count} times)", finding.count, what=finding.message)
    return command(
        _LEVELS[finding.severity],
        language(said),
        _at(folder, finding.file),
        finding.line,
        language(kind_words(finding.kind)),
    )


def _at(folder: str, file: str | None) -> str:
    return f"{folder}/{file}" if folder else str(file)


def _escaped(message: str) -> str:
    return message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _field(value: str) -> str:
    return _escaped(clean(value)).replace(":", "%3A").replace(",", "%2C")


def job_summary(result: Result, language: Language = ENGLISH) -> str:
    """Markdown for $GITHUB_STEP_SUMMARY. What students wrote stands in code blocks."""
    earned = points(result)
    lines = [f"## {headline(result, language)}", ""]
    if earned is not None:
        lines += [language(phrase("Points: **{points}**", points=str(earned))), ""]
    if result.cases:
        verdict = language(phrase("verdict"))
        lines += [f"| M×N×K | {verdict} | |", "|---|---|---|"]
        for case in result.cases:
            verdict = verdict_name(case.verdict, language)
            said = _cell(what_happened(case, language))
            lines.append(f"| {size_text(case.size)} | {verdict} | {said} |")
        lines.append("")
    fence = "`" * (1 + max((len(run) for run in _ticks(summary(result, language))), default=2))
    lines += [fence, summary(result, language), fence, ""]
    return "\n".join(lines)


def _cell(words: str) -> str:
    """As text in a cell of a table: no markup and no link."""
    signs = "\\`*_{}[]<>()#+!|~@:"
    marked = "".join(f"&#{ord(sign)};" if sign in signs else sign for sign in words)
    return marked.replace("\n", "<br>")


def _ticks(words: str) -> list[str]:
    runs = "".join(sign if sign == "`" else " " for sign in words).split()
    return ["``", *runs]


def outputs(result: Result) -> str:
    """Lines for $GITHUB_OUTPUT, which later steps can read."""
    earned = points(result)
    lines = [f"verdict={result.verdict.value}"]
    if earned is not None:
        lines += [f"points={earned.earned:g}", f"max-points={earned.possible:g}"]
    return "".join(f"{line}\n" for line in lines)
