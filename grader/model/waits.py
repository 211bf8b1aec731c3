"""Loops in which a warp asks other blocks: whether they have written, or what is left to do.

How often it waits, and how much it takes, depends on when the others run. Counts of one order of
blocks say nothing of another.
"""

import re
from collections.abc import Sequence

from grader.build import Loop, SassFunction, SassInstruction
from grader.model.blocks import flows
from grader.model.main_loop import loop_code

_NAME = re.compile(r"\w+")
_MOST = 24  # instructions of such a loop
_LOOKS = ("LD", "LDG", "ATOM", "ATOMG")
# Nothing else may run in it: whatever computes, stores or reads elsewhere is work.
_IDLE = {
    *(*_LOOKS, "BRA", "BSSY", "BSYNC", "CCTL", "IMAD", "ISETP", "LOP3", "MOV", "NANOSLEEP", "NOP"),
    *("PLOP3", "PRMT", "SEL", "SHF", "UISETP", "ULOP3", "UMOV", "VOTE", "WARPSYNC", "YIELD"),
}
_EXCHANGES = {"CAS", "EXCH"}


def takes_work(function: SassFunction) -> bool:
    """Whether blocks take part after part from a counter until none is left."""
    items = (item for loop in function.loops for item in loop_code(function, loop))
    return any(
        item.base == "ATOMG" and not _EXCHANGES & {*item.opcode.split(".")} for item in items
    )


def waits(function: SassFunction) -> tuple[Loop, ...]:
    """Find the loops that only read the same words again, past the L1, until they like them."""
    codes = ((loop, loop_code(function, loop)) for loop in function.loops)
    return tuple(loop for loop, code in codes if len(code) <= _MOST and _waits(code))


def _waits(code: Sequence[SassInstruction]) -> bool:
    looks = [item for item in code if item.base in _LOOKS]
    written = {item.operands[0] for item in code if item.operands}
    return (
        bool(looks)
        and all(item.base in _IDLE for item in code)
        and all(".STRONG" in look.opcode for look in looks)
        and written.isdisjoint(name for look in looks for name in _NAME.findall(look.operands[1]))
    )


def with_one_look(function: SassFunction, runs: Sequence[float]) -> list[float]:
    """Return executions of every block as if all waits ended at once: no order needs less."""
    found, taken = list(runs), flows(function, runs)
    for loop in waits(function):
        outside = (each for each in taken if each[1] == loop.head and each[0] not in loop.blocks)
        entered = sum(taken[each] for each in outside)
        often = runs[loop.head]
        for index in loop.blocks if 0 < entered < often else ():
            found[index] *= entered / often
    return found
