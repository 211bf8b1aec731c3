"""Findings as SARIF 2.1.0, which editors and code scanning read.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/ (read 2026-11-22)
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from ptxsim.findings.finding import Severity
from ptxsim.findings.remarks import Remark, clean
from ptxsim.record import Record
from ptxsim.text import Message

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


class SarifResult(Record):
    """One finding at one place. ``same`` tells that two runs found the same."""

    rule: str
    severity: Severity
    message: str
    path: str
    line: int
    same: Message | str
    properties: Mapping[str, object] = {}


def sarif_result(found: Remark[str], rule: str, message: str, path: str) -> SarifResult:
    """The English message is enough to tell that it is the same finding after lines above it have
    changed, or the language."""
    return SarifResult(
        rule=rule,
        severity=found.severity,
        message=message,
        path=path,
        line=found.line or 1,
        same=found.message,
        properties={"count": found.count, "block": found.block, "thread": found.thread},
    )


def sarif(
    tool: str,
    version: str,
    run: str,
    results: Iterable[SarifResult],
    failure: str | None = None,
    rules: Mapping[str, str] | None = None,
) -> str:
    """One run of a tool. failure: why it did not succeed. rules: descriptions, where they are not
    the rules' names."""
    found = list(results)
    invocation: dict[str, object] = {"executionSuccessful": failure is None}
    if failure is not None:
        said = {"level": "error", "message": {"text": failure}}
        invocation["toolExecutionNotifications"] = [said]
    words = {each.rule: each.rule.replace("-", " ") for each in found} | dict(rules or {})
    described = [
        {"id": rule, "shortDescription": {"text": text[:1].upper() + text[1:]}}
        for rule, text in sorted(words.items())
    ]
    document = {
        "tool": {"driver": {"name": tool, "version": version, "rules": described}},
        "automationDetails": {"id": f"{tool}/{run}/"},
        "invocations": [invocation],
        "results": [_document(each) for each in found],
    }
    whole = {"$schema": SCHEMA, "version": "2.1.0", "runs": [document]}
    return json.dumps(whole, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _document(found: SarifResult) -> dict[str, object]:
    # Code scanning ignores what has no place.
    digest = hashlib.sha256(f"{found.rule}\0{found.path}\0{found.same}".encode()).hexdigest()[:32]
    place = {"artifactLocation": {"uri": quote(found.path)}, "region": {"startLine": found.line}}
    properties = {name: value for name, value in found.properties.items() if value is not None}
    return {
        "ruleId": found.rule,
        "level": _LEVELS[found.severity],
        "message": {"text": clean(found.message)},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"finding/v1": digest},
        **({"properties": properties} if properties else {}),
    }
