"""A program that the simulator rejects → verdict and words."""

from __future__ import annotations

from grader.backends.simulator.wording import refusal_worded
from grader.errors import Rejected
from grader.model import Verdict, verbatim
from ptxsim.errors import Reason, RefusedProgram

_VERDICTS = {
    Reason.UNREADABLE: Verdict.IE,
    Reason.ASSEMBLY: Verdict.CE,
    Reason.TAKEN_NAME: Verdict.CE,
    Reason.UNSUPPORTED: Verdict.IE,
    Reason.TOO_LARGE: Verdict.IE,
    Reason.UNSOUND: Verdict.RE,
    Reason.WRONG_PLAN: Verdict.RE,
}


def rejected(refusal: RefusedProgram) -> Rejected:
    message, findings = refusal_worded(refusal)
    return Rejected(_VERDICTS[refusal.reason], verbatim(message), findings)
