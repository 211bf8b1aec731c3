"""The words that all stages share."""

from __future__ import annotations

from enum import Enum


class Verdict(str, Enum):
    """What a case or a submission comes to."""

    AC = "AC"  # accepted
    WA = "WA"  # wrong answer
    CE = "CE"  # compile error
    RE = "RE"  # runtime error: illegal access, launch failure, host crash
    TLE = "TLE"  # time limit
    FE = "FE"  # folder or interface not as the lab asks
    RF = "RF"  # rule forbidden
    IE = "IE"  # the grader's own fault; never a zero
