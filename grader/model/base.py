"""The verdict, which all stages share."""

from __future__ import annotations

from enum import Enum


class Verdict(str, Enum):
    """The verdict on a case or a submission."""

    AC = "AC"  # accepted
    WA = "WA"  # wrong answer
    CE = "CE"  # compile error
    RE = "RE"  # runtime error: illegal access, launch failure, host crash
    TLE = "TLE"  # time limit
    FE = "FE"  # folder or interface not as the lab requires
    RF = "RF"  # rule forbidden
    IE = "IE"  # internal error; never a zero
