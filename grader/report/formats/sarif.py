"""Result → SARIF 2.1.0, which editors and code scanning show beside the source.

Standard: https://docs.oasis-open.org/sarif/sarif/v2.1.0/ (read 2026-11-22).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from urllib.parse import quote

from grader.language import ENGLISH, Language
from grader.model import Finding, Kind, Result, Severity, Verdict
from grader.report import text
from grader.report.formats.course_view import compile_errors, unplaced, why
from grader.report.text import clean

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
_COMPILE_ERROR = "compile-error"
_VERDICT = "verdict-"


def sarif(result: Result, folder: str = "", language: Language = ENGLISH) -> str:
    """One run. folder: of the submission, from the root of the workspace.

    A failure of the grader is a run that did not succeed, with no results.
    """
    failed = result.verdict is Verdict.IE
    results = [] if failed else list(_results(result, folder, language))
    used = {str(each["ruleId"]) for each in results}
    invocation: dict[str, object] = {"executionSuccessful": not failed}
    if failed:
        words = why(result, language)
        invocation["toolExecutionNotifications"] = [{"level": "error", "message": {"text": words}}]
    run = {
        "tool": {
            "driver": {
                "name": "sgemm-grader",
                "version": result.environment.grader,
                "rules": [_rule(name, language) for name in sorted(used)],
            }
        },
        "automationDetails": {"id": f"sgemm-grader/{result.lab.id}/"},
        "invocations": [invocation],
        "results": results,
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _rule(name: str, language: Language) -> dict[str, object]:
    if name.startswith(_VERDICT):
        words = language(text.VERDICT_WORDS[Verdict(name.removeprefix(_VERDICT).upper())])
    else:
        words = name.replace("-", " ")
    return {"id": name, "shortDescription": {"text": words[:1].upper() + words[1:]}}


def _results(result: Result, folder: str, language: Language) -> Iterator[dict[str, object]]:
    main = result.problem.main
    for error in compile_errors(result):
        said = error.text
        yield _result(_COMPILE_ERROR, "error", said, folder, error.file, error.line, said)
    for finding in result.findings:
        yield _of_finding(finding, folder, main, language)
    if rest := unplaced(result, language):
        rule, same = f"{_VERDICT}{result.verdict.value.lower()}", unplaced(result)
        yield _result(rule, "error", rest, folder, main, 1, same)


def _of_finding(finding: Finding, folder: str, main: str, language: Language) -> dict[str, object]:
    kind, level = Kind(finding.kind).value, _LEVELS[finding.severity]
    # Code scanning ignores what has no place.
    said, file = language(finding.message), finding.file or main
    # Enough to tell that it is the same finding after lines above it have changed, or the language.
    same = str(finding.message)
    found = _result(kind, level, said, folder, file, finding.line or 1, same)
    where = {"count": finding.count, "block": finding.block, "thread": finding.thread}
    found["properties"] = {name: value for name, value in where.items() if value is not None}
    return found


def _result(
    rule: str,
    level: str,
    message: str,
    folder: str,
    file: str | None,
    line: int | None,
    same: str,
) -> dict[str, object]:
    path = f"{folder}/{file}" if folder else str(file)
    digest = hashlib.sha256(f"{rule}\0{path}\0{same}".encode()).hexdigest()[:32]
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": clean(message)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(path)},
                    "region": {"startLine": line},
                }
            }
        ],
        "partialFingerprints": {"finding/v1": digest},
    }
