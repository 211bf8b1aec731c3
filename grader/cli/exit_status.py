"""Exit statuses of ``grade``. Errors carry their own: ``errors.py``."""

from __future__ import annotations

from grader.model import Result, Verdict

DONE = 0
NOT_ACCEPTED = 1
WRONG_USAGE = 2
FAULT = 3  # of the grader or the machine; no score is recorded
INTERRUPTED = 130  # Ctrl-C
TERMINATED = 143  # SIGTERM


def of(result: Result) -> int:
    """The exit status for this result."""
    return {Verdict.AC: DONE, Verdict.IE: FAULT}.get(result.verdict, NOT_ACCEPTED)
