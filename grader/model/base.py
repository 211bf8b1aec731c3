"""What the records of all stages share."""

from __future__ import annotations

from enum import Enum

from ptxsim.records import Size


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


Dims = dict[str, int]  # a size: its dimensions by name, in their order


def size_text(dims: Dims) -> str:
    """A size in words: "64×64×32", "n = 1024"."""
    return str(Size(dims=dims))
