"""What students are told, in English."""

from __future__ import annotations

from grader.backends.simulator import wording
from ptxsim.findings.finding import Finding


def sentence(seen: Finding) -> str:
    return str(wording.sentence(seen))
