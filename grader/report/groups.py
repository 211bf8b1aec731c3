"""Group findings that come from one mistake, so that a report shows them once."""

from __future__ import annotations

from collections.abc import Sequence

from grader.model import Finding

CONTEXT = 2  # source lines shown above and below the line of a finding


def neighbours(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Groups of findings of one kind on nearby lines; no group is empty."""
    groups: list[list[Finding]] = []
    for finding in findings:
        last = groups[-1][-1] if groups else None
        if (
            last is not None
            and (last.kind, last.severity, last.file)
            == (finding.kind, finding.severity, finding.file)
            and last.line is not None
            and finding.line is not None
            and 0 < finding.line - last.line <= CONTEXT
        ):
            groups[-1].append(finding)
        else:
            groups.append([finding])
    return groups
